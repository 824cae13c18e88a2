//! completions, man: made from the definitions of the arguments.

use std::io::Write;
use std::path::Path;

use clap::{Command as Definition, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;
use drumlin_fs::{CreateOptions, Env, FileKind};
use serde_json::json;

use crate::args::Arguments;
use crate::failure::Outcome;
use crate::output::Output;

/// Prints the completions for a shell.
pub(crate) fn completions(shell: Shell, out: &mut Output) -> Outcome {
    // First into memory: the generator panics where it cannot write.
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "drumlin", &mut text);
    Ok(out.write_all(&text)?)
}

/// Prints the page of the command, or writes it and one for each subcommand into a directory.
pub(crate) fn man(dir: Option<&Path>, out: &mut Output) -> Outcome {
    let mut command = Arguments::command();
    command.build();
    let Some(dir) = dir else {
        return Ok(out.write_all(&page(command)?)?);
    };
    let files = Env::system().files;
    files.create_dir_all(dir)?;
    for definition in with_subcommands(command) {
        let name = definition.get_display_name().unwrap_or("drumlin");
        let path = dir.join(format!("{name}.1"));
        let mut file = files.create(&path, CreateOptions::new(FileKind::Other))?;
        file.append(&page(definition)?)?;
        file.close()?;
        out.fact(path.display().to_string(), json!({"page": path}))?;
    }
    Ok(())
}

fn page(definition: Definition) -> Outcome<Vec<u8>> {
    let mut text = Vec::new();
    Man::new(definition).render(&mut text)?;
    Ok(text)
}

/// The definition and those below it. Built, each has the name of its page.
fn with_subcommands(definition: Definition) -> Vec<Definition> {
    let below = definition.get_subcommands();
    let below = below.filter(|it| !it.is_hide_set() && it.get_name() != "help");
    let below: Vec<_> = below.cloned().flat_map(with_subcommands).collect();
    std::iter::once(definition).chain(below).collect()
}
