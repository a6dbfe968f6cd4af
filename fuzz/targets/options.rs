//! Bytes behind a token: options and payload are read, written again by number and value, and looked
//! up by number.

#![no_main]

use coapway_message::options::{minimal_uint, uint};
use coapway_message::{Options, OptionsWriter};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok((options, payload)) = Options::parse(bytes) else { return };
    let marker = usize::from(!payload.is_empty());
    assert_eq!(options.as_encoded().len() + marker + payload.len(), bytes.len());
    assert!(bytes.ends_with(payload));

    let mut buffer = vec![0xAA; 3];
    let mut writer = OptionsWriter::new(&mut buffer);
    let (mut count, mut values, mut last) = (0, 0, None);
    for (number, value) in options {
        assert!(last <= Some(number));
        writer.push(number, value);
        count += 1;
        values += value.len();
        if last != Some(number) {
            assert_eq!(options.first(number), Some(value));
            assert_eq!(options.uint(number), uint(value));
            let others = options.iter().filter(|(other, _)| *other == number).map(|(_, value)| value);
            assert!(options.values(number).eq(others));
        }
        if let Some(number) = uint(value) {
            let mut short = [0; 4];
            let short = minimal_uint(number, &mut short);
            assert!(value.ends_with(short) && value[..value.len() - short.len()].iter().all(|&b| b == 0));
        }
        let _ = (number.is_repeatable(), number.allows_length(value.len()), number.to_string());
        last = Some(number);
    }
    assert_eq!(writer.finish(), options);
    assert!(count + values <= bytes.len());
});
