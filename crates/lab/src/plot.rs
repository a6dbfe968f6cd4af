//! Four pictures of each cell: how soon, how many copies, which timeout, and what speed costs.
//!
//! ```text
//! results ─▶ panels ─▶ Axes ─▶ Picture: lines, dots, bars, texts ─┬─▶ svg
//!                                                                └─▶ png
//! ```

mod axes;
mod panels;
mod picture;
mod png;
mod svg;

use std::path::{Path, PathBuf};

use crate::study::{Study, Summary};

/// How pictures can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Svg,
    Png,
}

impl Format {
    /// The one that a file's name asks for.
    pub(crate) fn of(file: &Path) -> Option<Self> {
        match file.extension()?.to_str()? {
            "svg" => Some(Self::Svg),
            "png" => Some(Self::Png),
            _ => None,
        }
    }
}

/// Draws the results into files.
///
/// Errors: a file cannot be written, or the picture is too large for its format.
pub(crate) fn write(files: &[PathBuf], study: &Study, results: &[Vec<Summary>]) -> Result<(), String> {
    if files.is_empty() {
        return Ok(());
    }
    let picture = panels::picture(study, results);
    for file in files {
        let bytes = match Format::of(file) {
            Some(Format::Png) => png::encode(&picture)?,
            Some(Format::Svg) | None => svg::encode(&picture).into_bytes(),
        };
        std::fs::write(file, bytes)
            .map_err(|error| format!("{} cannot be written: {error}", file.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
