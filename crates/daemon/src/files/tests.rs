use std::os::unix::fs::symlink;

use coapway_config::Overrides;

use super::*;

fn config(settings: &[&str]) -> Config {
    let set = settings.iter().map(|text| (*text).to_owned()).collect();
    let overrides = Overrides { set, ..Overrides::default() };
    let none = std::iter::empty::<(String, String)>();
    Config::load(None, none, &overrides).unwrap_or_else(|errors| panic!("{errors}"))
}

fn from_file(path: &Path, text: &str) -> Vec<String> {
    let none = std::iter::empty::<(String, String)>();
    fs::write(path, text).expect("written");
    let config = Config::load(Some((path, text)), none, &Overrides::default());
    let config = config.unwrap_or_else(|errors| panic!("{errors}"));
    objections(&config).iter().map(ToString::to_string).collect()
}

#[test]
fn files_are_tried_and_none_is_made() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path().display();
    let objections = |setting: &str| objections(&config(&[setting]));
    let count = || fs::read_dir(folder.path()).expect("a folder").count();
    assert!(objections(&format!("record.file={place}/records")).is_empty());
    assert!(objections(&format!("state={place}/learned")).is_empty());
    assert!(objections("state=learned").is_empty());
    assert_eq!(count(), 0);

    fs::write(folder.path().join("file"), "127.0.0.1 boiler\n").expect("written");
    assert!(objections(&format!("log.file={place}/file")).is_empty());
    assert!(objections(&format!("resolver=hosts:{place}/file")).is_empty());
    assert!(objections(&format!("state={place}/file")).is_empty());
    let fifo = folder.path().join("fifo");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().expect("it runs").success());
    let _socket = std::os::unix::net::UnixListener::bind(folder.path().join("socket")).expect("bound");
    fs::copy("/bin/true", folder.path().join("program")).expect("copied");
    fs::write(folder.path().join("script"), "#!/bin/sh\n").expect("written");
    symlink("none/records", folder.path().join("link")).expect("made");
    for (setting, reason) in [
        (format!("record.file={place}"), "a directory, not a file"),
        (format!("record.file={place}/none/records"), "no directory"),
        (format!("record.file={place}/none/"), "a directory, not a file"),
        (format!("record.file={place}/link"), "no directory"),
        (format!("log.file={place}/file/log"), "cannot be written"),
        (format!("resolver=hosts:{place}/none"), "cannot be read"),
        (format!("resolver=hosts:{place}"), "a directory, not a file"),
        (format!("resolver=hosts:{place}/fifo"), "not a file"),
        ("resolver=hosts:/dev/zero".to_owned(), "not a file"),
        (format!("state={place}"), "a directory, not a file"),
        (format!("state={place}/none/learned"), "no directory"),
        (format!("state={place}/file/learned"), "cannot be written"),
        (format!("state={place}/none/"), "a directory, not a file"),
        (format!("state={place}/fifo"), "not a file"),
        (format!("log.file={place}/socket"), "not a file"),
        (format!("record.file={place}/file"), "it begins with what is no record"),
        (format!("log.file={place}/program"), "its first line is not text"),
        (format!("log.file={place}/script"), "a script"),
    ] {
        let [error] = &objections(&setting)[..] else { panic!("{setting}") };
        let text = error.to_string();
        assert!(text.starts_with(&format!("command line: --set {setting}\n")), "{text}");
        assert!(text.contains(reason), "{text}");
    }
    assert_eq!(fs::read_to_string(folder.path().join("file")).expect("read"), "127.0.0.1 boiler\n");
}

#[test]
fn what_is_written_is_no_other_file_however_that_is_called() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path();
    let own = place.join("coapway.toml");
    fs::create_dir(place.join("below")).expect("made");
    symlink(&own, place.join("link")).expect("made");
    symlink(place, place.join("here")).expect("made");
    symlink("later", place.join("dangling")).expect("made");
    fs::write(&own, "").expect("written");
    fs::hard_link(&own, place.join("hard")).expect("made");
    fs::write(place.join("hosts"), "").expect("written");
    fs::copy("/bin/true", place.join("program")).expect("copied");
    let at = |name: &str| place.join(name).display().to_string();
    let own_names =
        ["coapway.toml", "below/../coapway.toml", "./coapway.toml", "here/coapway.toml", "link", "hard"];
    for (key, name) in
        ["record.file", "log.file", "state"].iter().flat_map(|key| own_names.map(|name| (key, name)))
    {
        let [error] = &from_file(&own, &format!("{key} = '{}'\n", at(name)))[..] else {
            panic!("{key} {name}")
        };
        let column = key.len() + 4;
        let begins = format!(
            "{}:1:{column}: {key} = {}\n    the same file as this configuration\n",
            own.display(),
            at(name)
        );
        assert!(error.starts_with(&begins), "{error}");
        assert!(error.contains("so it has to be a file of its own"), "{error}");
    }
    for (one, other, told, reason) in [
        ("record.file = '{}/lines'", "log.file = '{}/below/../lines'", "2:12: log.file", "record.file (X:1)"),
        ("record.file = '{}/here/lines'", "state = '{}/lines'", "2:15: record.file", "state (X:1)"),
        ("record.file = '{}/dangling'", "log.file = '{}/later'", "2:12: log.file", "record.file (X:1)"),
        ("record.file = '{}/hosts'", "resolver = 'hosts:{}/hosts'", "2:15: record.file", "resolver (X:1)"),
        ("log.file = '{}/learned.new'", "state = '{}/learned'", "2:12: log.file", "becomes"),
        ("log.file = '{}/program'", "on_alert = ['{}/program']", "2:12: log.file", "on_alert (X:1)"),
    ] {
        // Keys without a table come first.
        let (one, other) = if other.starts_with("log") { (one, other) } else { (other, one) };
        let text = format!("{one}\n{other}\n").replace("{}", &place.display().to_string());
        let [error] = &from_file(&own, &text)[..] else { panic!("{text}") };
        assert!(error.starts_with(&format!("{}:{told} = ", own.display())), "{error}");
        assert!(error.contains(&reason.replace('X', &own.display().to_string())), "{error}");
    }
}

#[test]
fn what_is_only_read_or_keeps_nothing_may_be_used_twice() {
    let folder = tempfile::tempdir().expect("a folder");
    let own = folder.path().join("coapway.toml");
    for text in [
        "record.file = '/dev/null'\nlog.file = '/dev/null'\n".to_owned(),
        format!("resolver = 'hosts:{}'\n", own.display()),
        format!("record.file = '{0}/lines'\nlog.file = '{0}/log'\n", folder.path().display()),
    ] {
        assert_eq!(from_file(&own, &text), [""; 0], "{text}");
    }
}
