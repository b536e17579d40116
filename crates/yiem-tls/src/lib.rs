//! One TLS client configuration for the process: rustls on ring, the machine's CA roots loaded once.
//!
//! Knows: the cryptography, the roots, and that reading them is worth doing once. Does not know: who
//! connects where.
//!
//! This is the one crate whose signatures show rustls: its users hand the value on to reqwest and
//! async-nats, and it is part of none of their public interfaces.
//!
//! ```
//! let first = yiem_tls::client_config();
//! let second = yiem_tls::client_config();
//! // Both trust what the machine trusts, whose roots are read once.
//! assert!(std::sync::Arc::ptr_eq(first.crypto_provider(), second.crypto_provider()));
//! ```

mod config;

pub use config::{certificates_of, client_config, client_config_with, install_default_provider};
