//! The manual pages: one of the program, one of each command, one of the configuration file.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Inline, Roff, bold, roman};

const MANUAL: &str = "coapway";

/// What the command line's definitions do not say.
const SIGNALS: [(&str, &str); 3] = [
    (
        "SIGTERM, SIGINT",
        "Finish the requests that run, for at most drain_timeout, refuse new ones with 5.03, and end. A second one ends at once.",
    ),
    ("SIGHUP", "Read the configuration again. A file with a mistake changes nothing and is told in the log."),
    ("SIGUSR1", "Open the files of records and log anew, after they were renamed."),
];
const EXIT_STATUS: [(&str, &str); 3] = [
    ("0", "Done: a 2.xx response, a good configuration, a proxy that was asked to stop."),
    ("1", "Failed: another response or none, or the proxy could not start."),
    ("2", "Wrong use or a configuration with mistakes; nothing was sent or started."),
];
const FILES: [(&str, &str); 2] = [
    ("/etc/coapway/coapway.toml", "What the service reads. Without --config no file is read."),
    ("/var/log/coapway", "The service's working directory, for records and log where they go to files."),
];
const ENVIRONMENT: [(&str, &str); 3] = [
    ("COAP_UPSTREAM_ACK_TIMEOUT and others", "Transmission parameters, in seconds; see coapway.toml(5)."),
    ("COAPWAY__SECTION__KEY", "Any other key of the configuration file."),
    (
        "NOTIFY_SOCKET, WATCHDOG_USEC",
        "Set by a service manager that wants to hear when the proxy is ready and that it lives.",
    ),
];
const EXAMPLES: [(&str, &str); 6] = [
    (
        "coapway serve --listen coap://127.0.0.1:5683 --reverse coap://10.1.2.3",
        "One origin behind this proxy.",
    ),
    (
        "coapway check --config /etc/coapway/coapway.toml --dump",
        "Every value in use, its source, and what follows from it.",
    ),
    (
        "coapway get coap://10.1.2.3/temperature --proxy coap://127.0.0.1:5683",
        "A resource through the proxy.",
    ),
    ("coapway put coap://10.1.2.3/light --payload on --content-format 0", "A new representation."),
    ("coapway observe coap://10.1.2.3/temperature --for 1h", "Each change of an hour."),
    (
        "coapway simulate loss-15 --policy default --policy fixed",
        "What learned timeouts are worth where much is lost; nothing is sent.",
    ),
];

/// Writes all pages into a folder: `coapway.1`, `coapway-get.1` and so on, `coapway.toml.5`.
pub(crate) fn write(command: &Command, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    for (name, page) in pages(command)? {
        let path = folder.join(name);
        fs::write(&path, page).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// File names and pages.
fn pages(command: &Command) -> Result<Vec<(String, Vec<u8>)>> {
    let mut command = command.clone().disable_help_subcommand(true);
    command.build();
    let mut pages = vec![("coapway.1".to_owned(), program(&command)?)];
    for command in command.get_subcommands().filter(|command| !command.is_hide_set()) {
        let page = Man::new(command.clone()).manual(MANUAL).source(source());
        let mut text = Vec::new();
        page.render(&mut text)?;
        see_also(&["coapway(1)", "coapway.toml(5)"]).to_writer(&mut text)?;
        pages.push((page.get_filename(), text));
    }
    pages.push(("coapway.toml.5".to_owned(), configuration(&coapway_config::reference()).into_bytes()));
    Ok(pages)
}

fn source() -> String {
    format!("coapway {}", env!("CARGO_PKG_VERSION"))
}

fn program(command: &Command) -> Result<Vec<u8>> {
    let page = Man::new(command.clone()).manual(MANUAL).source(source());
    let mut text = Vec::new();
    page.render_title(&mut text)?;
    page.render_name_section(&mut text)?;
    page.render_synopsis_section(&mut text)?;
    page.render_description_section(&mut text)?;
    page.render_subcommands_section(&mut text)?;
    page.render_options_section(&mut text)?;
    for (title, entries) in [
        ("EXIT STATUS", &EXIT_STATUS[..]),
        ("SIGNALS", &SIGNALS),
        ("FILES", &FILES),
        ("ENVIRONMENT", &ENVIRONMENT),
        ("EXAMPLES", &EXAMPLES),
    ] {
        let mut section = Roff::new();
        section.control("SH", [title]);
        for (what, meaning) in entries {
            section.control("TP", []).text([bold(*what)]).text([roman(*meaning)]);
        }
        section.to_writer(&mut text)?;
    }
    see_also(&["coapway.toml(5)", "systemctl(1)", "RFC 7252"]).to_writer(&mut text)?;
    Ok(text)
}

fn see_also(pages: &[&str]) -> Roff {
    let mut section = Roff::new();
    section.control("SH", ["SEE ALSO"]).text([roman(pages.join(", "))]);
    section
}

/// The reference page, which is Markdown of a few shapes, as a manual page.
fn configuration(reference: &str) -> String {
    let mut page = Roff::new();
    let source = source();
    page.control("TH", ["coapway.toml", "5", "", source.as_str(), MANUAL]);
    page.control("SH", ["NAME"]).text([roman("coapway.toml - configuration of the CoAP proxy coapway")]);
    page.control("SH", ["DESCRIPTION"]);
    for line in reference.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            page.control("SH", [title.replace('`', "").as_str()]);
        } else if let Some(item) = line.strip_prefix("- ") {
            page.control("IP", ["\\(bu", "2"]).text(inlines(item));
        } else if let Some((number, item)) = numbered(line) {
            page.control("IP", [number, "3"]).text(inlines(item));
        } else if let Some(row) = line.strip_prefix("| ").and_then(|row| row.strip_suffix(" |")) {
            key(&mut page, row);
        } else if line.is_empty() {
            page.control("PP", []);
        } else if !line.starts_with("# ") && !line.starts_with("|---") && !line.starts_with("This page is") {
            page.text(inlines(line));
        }
    }
    page.control("SH", ["SEE ALSO"]).text([roman("coapway(1), coapway-check(1)")]);
    page.to_roff()
}

fn numbered(line: &str) -> Option<(&str, &str)> {
    let (number, item) = line.split_once(". ")?;
    (!number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())).then_some((number, item))
}

/// One row of a table of keys.
fn key(page: &mut Roff, row: &str) {
    let mut cells = row.split(" | ");
    let (Some(name), Some(default), Some(allowed)) = (cells.next(), cells.next(), cells.next()) else {
        return;
    };
    if name == "key" {
        return;
    }
    let meaning = cells.collect::<Vec<_>>().join(" | ");
    page.control("TP", []).text(inlines(name)).text(inlines(&meaning));
    let mut values = String::new();
    if default != "-" {
        let _ = write!(values, "Default: {default}. ");
    }
    let _ = write!(values, "Allowed: {allowed}.");
    page.control("br", []).text(inlines(&values));
}

/// Text whose words between backquotes are code.
fn inlines(text: &str) -> Vec<Inline> {
    let parts = text.split('`').enumerate().filter(|(_, part)| !part.is_empty());
    parts.map(|(place, part)| if place % 2 == 1 { bold(part) } else { roman(part) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<(String, String)> {
        let pages = pages(&coapway_daemon::command_line()).expect("pages");
        pages.into_iter().map(|(name, page)| (name, plain(&String::from_utf8(page).expect("text")))).collect()
    }

    /// Without fonts and escapes.
    fn plain(page: &str) -> String {
        let page =
            ["\\fB", "\\fI", "\\fR", "\\&"].iter().fold(page.to_owned(), |page, font| page.replace(font, ""));
        page.replace("\\-", "-").replace("\\*(Aq", "'").replace("\\(aq", "'")
    }

    fn page<'p>(pages: &'p [(String, String)], name: &str) -> &'p str {
        &pages.iter().find(|page| page.0 == name).unwrap_or_else(|| panic!("no page {name}")).1
    }

    #[test]
    fn each_command_and_each_flag_has_its_place() {
        let pages = all();
        let program = page(&pages, "coapway.1");
        let mut command = coapway_daemon::command_line().disable_help_subcommand(true);
        command.build();
        let mut flags = 0;
        for command in command.get_subcommands() {
            let name = command.get_name();
            assert!(program.contains(&format!("coapway-{name}(1)")), "{name} in coapway(1)");
            let own = page(&pages, &format!("coapway-{name}.1"));
            for argument in command.get_arguments() {
                let long = argument.get_long().map(|long| format!("--{long}"));
                let what = long.unwrap_or_else(|| argument.get_value_names().expect("a name")[0].to_string());
                let options = own.split(".SH OPTIONS").nth(1).unwrap_or_else(|| panic!("options of {name}"));
                assert_eq!(options.contains(&what), !argument.is_hide_set(), "{what} of {name}");
                flags += 1;
            }
        }
        assert!(flags > 60, "{flags} flags were looked for");
    }

    #[test]
    fn each_key_of_the_file_has_its_place() {
        let pages = all();
        let page = page(&pages, "coapway.toml.5");
        let mut keys = 0;
        for row in coapway_config::reference().lines().filter(|line| line.starts_with("| `")) {
            let name = row.split('`').nth(1).expect("a key");
            assert!(page.contains(&format!("\n.TP\n{name}\n")), "{name}");
            keys += 1;
        }
        assert!(keys > 60, "{keys} keys were looked for");
        for left in ["|---", "| ", "`", "## "] {
            assert!(!page.contains(left), "{left} is Markdown");
        }
    }

    #[test]
    fn sections_that_the_command_line_does_not_know_are_there() {
        let pages = all();
        let program = page(&pages, "coapway.1");
        for section in ["EXIT STATUS", "SIGNALS", "FILES", "ENVIRONMENT", "EXAMPLES", "SEE ALSO"] {
            assert!(
                program.contains(&format!(".SH {section}"))
                    || program.contains(&format!(".SH \"{section}\"")),
                "{section}"
            );
        }
    }
}
