#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| goondan_fuzz_targets::request(data));
