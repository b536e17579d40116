//! The promise `arguments`, fed by libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| yiem_fuzz::arguments(data));
