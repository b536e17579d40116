//! The promise `correlate`, fed by libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| yiem_fuzz::correlate(data));
