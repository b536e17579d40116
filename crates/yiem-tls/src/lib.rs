//! One TLS client configuration for the process.
