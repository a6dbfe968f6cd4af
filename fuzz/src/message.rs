//! Messages made from scripts.

use coapway_message::{Code, Content, MessageType, OptionNumber, OptionsWriter, datagram};

use crate::Script;

/// All types.
pub const TYPES: [MessageType; 4] =
    [MessageType::Confirmable, MessageType::NonConfirmable, MessageType::Acknowledgement, MessageType::Reset];

/// A message with these parts; `value` is left out where it is empty.
pub fn message(
    message_type: MessageType,
    message_id: u16,
    token: &[u8],
    code: Code,
    option: (OptionNumber, &[u8]),
    payload: &[u8],
) -> Vec<u8> {
    let (mut options, mut bytes) = (Vec::new(), Vec::new());
    let mut writer = OptionsWriter::new(&mut options);
    if !option.1.is_empty() {
        writer.push(option.0, option.1);
    }
    let content = Content { code, options: writer.finish(), payload };
    datagram::encode(&mut bytes, message_type, message_id, token, &content);
    bytes
}

/// Header fields from the script, then what follows the token as it stands there.
pub fn raw(script: &mut Script<'_>, message_id: u16, token: &[u8]) -> Option<Vec<u8>> {
    let (message_type, code) = (*script.pick(&TYPES)?, Code(script.byte()?));
    let mut bytes = Vec::new();
    datagram::encode(&mut bytes, message_type, message_id, token, &Content::bare(code));
    bytes.extend_from_slice(script.text()?);
    Some(bytes)
}
