//! Output that nobody reads: no panic, and an exit code that tells what was found.

use std::io;
use std::process::Command;

#[test]
fn nobody_need_read_what_is_found() {
    let run = |command: &str, is_read: bool| {
        let (reader, writer) = io::pipe().expect("pipes can be had");
        let reader = is_read.then_some(reader);
        let mut child = Command::new(env!("CARGO_BIN_EXE_coapway-xtask"))
            .arg(command)
            .stderr(writer)
            .spawn()
            .expect("xtask starts");
        let told = reader.map(|reader| io::read_to_string(reader).expect("text"));
        (child.wait().expect("it ends").code(), told)
    };
    let (code, told) = run("lines", true);
    assert!(
        code == Some(0) && told.is_some_and(|told| told.contains("warning: ")),
        "there is something to say"
    );
    assert_eq!(run("lines", false), (Some(0), None));
}
