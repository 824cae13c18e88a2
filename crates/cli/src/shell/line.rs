//! One line of the shell: parsed by the definitions of the command line, and carried out on the open store.

use clap::{CommandFactory, Parser};

use super::words::words;
use crate::args::{Arguments, Command, Place};
use crate::carry_out;
use crate::failure::{Failure, Outcome};
use crate::output::Output;

/// What follows a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    Line,
    End,
}

/// Carries out a line on the store of `place`.
///
/// # Errors
/// The command's.
pub(super) fn carry_out_line(place: &Place, line: &str, out: &mut Output) -> Outcome<Next> {
    let words = words(line).map_err(|what| Failure::Usage(what.to_owned()))?;
    match words.first().map(String::as_str) {
        None => return Ok(Next::Line),
        Some("exit" | "quit") => return Ok(Next::End),
        Some(_) => {}
    }
    let words = std::iter::once("drumlin".to_owned()).chain(words);
    let arguments = match Arguments::try_parse_from(words) {
        Ok(arguments) => arguments,
        // Also what `help` prints.
        Err(error) => {
            let text = error.render().to_string();
            return match error.use_stderr() {
                true => Err(Failure::Usage(text.trim_end().to_owned())),
                false => out.text(text.trim_end()).map(|()| Next::Line),
            };
        }
    };
    let wanted = arguments.place;
    if wanted.db.is_some() || wanted.wal_dir.is_some() {
        let message = "--db and --wal-dir: this shell has a store open; leave it for another one";
        return Err(Failure::Usage(message.to_owned()));
    }
    check(&arguments.command)?;
    let family = match wanted.family == "default" {
        true => place.family.clone(),
        false => wanted.family,
    };
    let of_line = Place {
        db: place.db.clone(),
        wal_dir: place.wal_dir.clone(),
        hex: place.hex || wanted.hex,
        json: place.json || wanted.json,
        family,
        ttl: wanted.ttl,
        held: place.held.clone(),
    };
    out.set_json(of_line.json);
    let outcome = carry_out(&of_line, arguments.command, out);
    out.set_json(place.json);
    outcome.map(|()| Next::Line)
}

/// Refuses commands that have stores of their own, and those that would read the script.
fn check(command: &Command) -> Outcome {
    let refused = match command {
        Command::Bench { .. }
        | Command::Ycsb { .. }
        | Command::Demo(_)
        | Command::Redis(_)
        | Command::Lab { .. }
        | Command::Follow(_)
        | Command::Shell(_) => "it opens a store of its own",
        Command::Put { value, literal, .. } if value == "-" && !literal => {
            "standard input has the commands; name a value, or take - itself with --literal"
        }
        Command::Load(load) if load.file.as_os_str() == "-" => {
            "standard input has the commands; name a file"
        }
        Command::WriteTable { lines, .. } if lines.as_os_str() == "-" => {
            "standard input has the commands; name a file"
        }
        _ => return Ok(()),
    };
    Err(Failure::Usage(format!("not in the shell: {refused}")))
}

/// The commands and their flags, for completion: the subcommands below `path`, and the long flags there.
pub(super) fn known(path: &[&str]) -> (Vec<String>, Vec<String>) {
    let mut definition = Arguments::command();
    definition.build();
    let mut at = &definition;
    for word in path {
        match at.find_subcommand(word) {
            Some(below) => at = below,
            None => break, // An argument.
        }
    }
    let mut commands: Vec<String> = at
        .get_subcommands()
        .map(|it| it.get_name().to_owned())
        .collect();
    if path.is_empty() {
        commands.extend(["exit".to_owned(), "quit".to_owned()]);
    }
    let flags = at.get_arguments().filter(|it| !it.is_hide_set());
    let flags = flags.filter_map(|it| it.get_long().map(|long| format!("--{long}")));
    (commands, flags.collect())
}
