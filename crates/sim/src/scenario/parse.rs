//! From text to settings and script.

use super::line::{Word, duration, words};
use super::message::message;
use super::settings::Settings;
use crate::script::{Act, Expected, Message, Peer, Role, Script, Step, When, Window};

/// What is wrong, and where.
#[derive(Debug)]
pub(super) struct Error {
    pub(super) line: usize,
    pub(super) what: String,
}

pub(super) fn parse(text: &str) -> Result<(Settings, Script), Error> {
    let mut parser = Parser::default();
    for (line, text) in (1..).zip(text.lines()) {
        words(text).and_then(|words| parser.line(line, text, &words)).map_err(|what| Error { line, what })?;
    }
    if let Some((line, _)) = parser.when {
        return Err(Error { line, what: "nothing follows this".to_owned() });
    }
    let names = parser.settings.peers().map(str::to_owned).collect::<Vec<_>>();
    names.iter().for_each(|name| {
        parser.peer(name);
    });
    // Together they must make a configuration, too.
    let plan = parser.settings.plan(&parser.script, 0);
    plan.map_err(|errors| Error { line: 1, what: errors.to_string() })?;
    Ok((parser.settings, parser.script))
}

#[derive(Debug, Default)]
struct Parser {
    settings: Settings,
    script: Script,
    /// An `after` or `at` that waits for its step.
    when: Option<(usize, When)>,
}

impl Parser {
    fn line(&mut self, line: usize, text: &str, words: &[Word]) -> Result<(), String> {
        let plain: Vec<_> = words.iter().map(|word| word.plain().unwrap_or_default()).collect();
        match &plain[..] {
            [] => Ok(()),
            ["set" | "route" | "name" | "forward" | "clients", ..]
                if !self.script.steps.is_empty() || self.when.is_some() =>
            {
                Err("settings stand before the first message".to_owned())
            }
            ["set", ..] => {
                let assignment = text.trim_start().trim_start_matches("set").split(" #").next();
                self.settings.set(assignment.unwrap_or_default().trim())
            }
            ["forward", "anything"] => {
                self.settings.forward_anything();
                Ok(())
            }
            ["clients", "unverified"] => {
                self.settings.leave_clients_unverified();
                Ok(())
            }
            ["route", "none"] => {
                self.settings.no_route();
                Ok(())
            }
            ["route", path, "->", origin, rest @ ..] => self.settings.route(path, origin, rest),
            ["name", name, "=", rest @ ..] => self.settings.name(name, rest),
            ["after", text] => self.when(line, When::After(window(text)?)),
            ["at", text] => self.when(line, When::At(window(text)?)),
            ["nothing", "for", time] => self.step(line, text, Act::Nothing(duration(time)?)),
            ["proxy", "sends", ..] => {
                let expected = self.expected(&words[2..])?;
                self.step(line, text, Act::Expect(expected))
            }
            ["proxy", "repeats", ..] => {
                let (message, to) = message(&words[2..])?;
                let peer = self.peer(to.as_deref().unwrap_or("origin"));
                self.step(line, text, Act::Expect(vec![Expected { peer, message }]))
            }
            ["proxy", "stalls", "for", time] => self.step(line, text, Act::Stall(duration(time)?)),
            [name, "sends", ..] => {
                let peer = self.peer(name);
                let messages = parts(&words[2..]).map(spoken_to_proxy).collect::<Result<_, _>>()?;
                self.step(line, text, Act::Send { peer, messages })
            }
            [name, "repeats", ..] => {
                let peer = self.peer(name);
                let messages = vec![spoken_to_proxy(&words[2..])?];
                self.step(line, text, Act::Send { peer, messages })
            }
            [name, "closes"] => {
                let peer = self.peer(name);
                self.step(line, text, Act::Listen { peer, listens: false })
            }
            [name, "moves"] => {
                let peer = self.peer(name);
                self.step(line, text, Act::Move { peer })
            }
            [name, "opens"] => {
                let peer = self.peer(name);
                self.step(line, text, Act::Listen { peer, listens: true })
            }
            _ => Err(
                "neither a setting nor PEER sends …, repeats, closes, opens, moves; after …; at …; nothing for …"
                    .to_owned(),
            ),
        }
    }

    fn when(&mut self, line: usize, when: When) -> Result<(), String> {
        match self.when.replace((line, when)) {
            None => Ok(()),
            Some(_) => Err("two times for one step".to_owned()),
        }
    }

    fn step(&mut self, line: usize, text: &str, act: Act) -> Result<(), String> {
        let when = self.when.take();
        if matches!(act, Act::Nothing(_)) && when.is_some() {
            return Err("`nothing for` has a time of its own".to_owned());
        }
        let when = when.map_or(When::After(Window::default()), |(_, when)| when);
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ").into();
        self.script.steps.push(Step { line, text, when, act });
        Ok(())
    }

    fn expected(&mut self, words: &[Word]) -> Result<Vec<Expected>, String> {
        parts(words)
            .map(|words| {
                let (message, to) = message(words)?;
                let to = match to {
                    Some(to) => to,
                    None => usual_peer(words)?.to_owned(),
                };
                Ok(Expected { peer: self.peer(&to), message })
            })
            .collect()
    }

    /// The place of a peer, new or not.
    fn peer(&mut self, name: &str) -> usize {
        let peers = &mut self.script.peers;
        peers.iter().position(|peer| &*peer.name == name).unwrap_or_else(|| {
            peers.push(Peer { name: name.into(), role: Role::of(name) });
            peers.len() - 1
        })
    }
}

/// `2s`, `2s..3s`.
fn window(text: &str) -> Result<Window, String> {
    let (from, until) = text.split_once("..").unwrap_or((text, text));
    let window = Window { from: duration(from)?, until: duration(until)? };
    if window.from > window.until {
        return Err("the window ends before it begins".to_owned());
    }
    Ok(window)
}

/// The messages of a line, between semicolons.
fn parts(words: &[Word]) -> impl Iterator<Item = &[Word]> {
    let parts = words.split(|word| word.is(";"));
    parts.map(|words| words.strip_prefix(&[then()][..]).unwrap_or(words))
}

fn then() -> Word {
    Word { bare: "then".to_owned(), quoted: None, behind: String::new() }
}

fn spoken_to_proxy(words: &[Word]) -> Result<Message, String> {
    match message(words)? {
        (message, None) => Ok(message),
        (message, Some(to)) if to == "group" => Ok(Message { to_group: true, ..message }),
        (_, Some(_)) => Err("peers send to the proxy only, or to=group".to_owned()),
    }
}

/// Requests go to `origin`, everything else to `client`.
fn usual_peer(words: &[Word]) -> Result<&'static str, String> {
    let code = words.get(1).and_then(Word::plain).unwrap_or_default();
    let request = coapway_message::Method::ALL.iter().any(|method| method.name() == code);
    match words.first() {
        Some(_) if request => Ok("origin"),
        Some(_) => Ok("client"),
        None => Err("sends what?".to_owned()),
    }
}
