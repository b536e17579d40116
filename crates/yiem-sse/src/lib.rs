//! An incremental reader of server-sent events: bytes in, events out.
