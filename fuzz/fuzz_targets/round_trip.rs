//! The promise `round_trip`, fed by libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| yiem_fuzz::round_trip(data));
