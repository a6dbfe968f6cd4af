//! File, environment and command line, read when a configuration is wanted.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use coapway_config::{Config, ConfigError, ConfigErrors, Overrides};

use crate::arguments::Settings;

/// No configuration is larger, in bytes.
const LARGEST_FILE: u64 = 1 << 20;

/// File, environment and command line, read now.
///
/// Errors: everything that is wrong.
pub(crate) fn load(settings: &Settings) -> Result<Config, ConfigErrors> {
    let bytes = settings.config.as_deref().map(read).transpose()?;
    let text = match (&settings.config, &bytes) {
        (Some(path), Some(bytes)) => Some((path.as_path(), coapway_config::text(path, bytes)?)),
        _ => None,
    };
    let overrides = Overrides {
        listen: settings.listen.clone(),
        reverse: settings.reverse.clone(),
        admin: settings.admin.clone(),
        record: settings.record.clone(),
        log: settings.log.clone(),
        log_format: settings.log_format.clone(),
        set: settings.set.clone(),
    };
    let repeated = overrides.repeated();
    match Config::load(text, std::env::vars_os(), &overrides) {
        Ok(config) if repeated.is_empty() => Ok(config),
        Ok(_) => Err(ConfigErrors::new(repeated)),
        Err(errors) => Err(ConfigErrors::new(errors.iter().cloned().chain(repeated).collect())),
    }
}

/// The same for settings that are read again. A file that can be read only once, like a pipe, is refused: it
/// would be empty now, or make everybody wait.
///
/// Errors: everything that is wrong.
pub(crate) fn load_again(settings: &Settings) -> Result<Config, ConfigErrors> {
    match &settings.config {
        Some(path) if std::fs::metadata(path).is_ok_and(|found| !found.is_file()) => {
            Err(wrong(path, "can be read only once".to_owned(), "a reload needs a regular file"))
        }
        Some(_) | None => load(settings),
    }
}

/// The bytes of the configuration file.
///
/// Errors: it cannot be read, or is larger than a configuration can be.
fn read(path: &Path) -> Result<Vec<u8>, ConfigErrors> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(LARGEST_FILE + 1).read_to_end(&mut bytes));
    let (reason, hint) = match read {
        Ok(_) if bytes.len() as u64 <= LARGEST_FILE => {
            return Ok(bytes);
        }
        Ok(_) => ("too large".to_owned(), "is it a configuration?"),
        Err(error) => (format!("cannot be read: {error}"), "--config FILE names the file"),
    };
    Err(wrong(path, reason, hint))
}

fn wrong(path: &Path, reason: String, hint: &str) -> ConfigErrors {
    ConfigErrors::new(vec![ConfigError {
        source: coapway_config::Source::CommandLine("--config"),
        key: String::new(),
        value: Some(path.display().to_string().into()),
        reason,
        allowed: Some("a file of at most 1MiB".into()),
        hint: Some(hint.into()),
    }])
}
