//! Completions for shells.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use clap::Command;
use clap_complete::{Shell, generate};

/// Shells, and how Debian's ones want the file to be called.
pub(crate) const SHELLS: [(Shell, &str); 3] =
    [(Shell::Bash, "coapway.bash"), (Shell::Zsh, "_coapway"), (Shell::Fish, "coapway.fish")];

/// Writes one file for each shell into a folder.
pub(crate) fn write(command: &Command, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    for (shell, name) in SHELLS {
        let path = folder.join(name);
        fs::write(&path, completions(command, shell))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

fn completions(command: &Command, shell: Shell) -> Vec<u8> {
    let mut text = Vec::new();
    generate(shell, &mut command.clone(), "coapway", &mut text);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_shell_knows_each_command_and_each_flag() {
        let command = coapway_daemon::command_line();
        for (shell, _) in SHELLS {
            let text = String::from_utf8(completions(&command, shell)).expect("text");
            for command in command.get_subcommands() {
                let name = command.get_name();
                assert!(text.contains(name), "{name} for {shell}");
                for flag in command.get_arguments().filter_map(|argument| argument.get_long()) {
                    let written =
                        if shell == Shell::Fish { format!("-l {flag}") } else { format!("--{flag}") };
                    let lines: Vec<_> = text.lines().filter(|line| line.contains(&written)).collect();
                    assert!(!lines.is_empty(), "{written} of {name} for {shell}");
                    if shell == Shell::Fish {
                        let about = format!("__fish_coapway_using_subcommand {name}");
                        assert!(
                            lines.iter().any(|line| line.contains(&about)),
                            "{written} of {name} for {shell}"
                        );
                    }
                }
            }
        }
    }
}
