//! The promise `stream_reply`, fed by libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| yiem_fuzz::stream_reply(data));
