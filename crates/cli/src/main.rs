//! The command `drumlin`: load, look, check and measure from a shell.
//!
//! Every command prints its result on standard output and remarks on standard error, and ends with
//! one of the exit codes of [`failure`]. Printing goes through [`output::Output`], which ends
//! quietly when the reader closes the pipe.

#![forbid(unsafe_code)]

mod args;
mod backup;
mod backup_place;
mod bench;
mod blobs;
mod changes;
mod convert;
mod demo;
mod doctor;
mod documents;
mod du;
mod escape;
mod external;
mod failure;
mod families;
mod figures;
mod follow;
mod formats;
mod generate;
mod history;
mod input;
mod inspect;
mod interrupt;
mod kv;
mod lab;
mod levels;
mod load;
mod maintenance;
mod manifest;
mod mongo;
mod mongo_args;
mod output;
mod place;
mod progress;
mod redis;
mod scan;
mod served;
mod settings;
mod shell;
mod tables;
mod top;
mod units;
mod ycsb;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Arguments, Command, Place};
use crate::failure::{Failure, Outcome};
use crate::output::{Output, remark};

fn main() -> ExitCode {
    drumlin::machine::return_freed_memory(); // keeps resident memory near the budget
    let mut out = Output::new();
    let outcome = run(&mut out).and_then(|()| out.flush());
    let Err(failure) = outcome else {
        return ExitCode::SUCCESS;
    };
    if failure.is_closed_pipe() {
        return ExitCode::SUCCESS;
    }
    // Output printed before the failure belongs before its message.
    let flushed = out.flush();
    remark(format!("drumlin: {failure}"));
    let failure = flushed
        .err()
        .filter(|error| !error.is_closed_pipe())
        .unwrap_or(failure);
    ExitCode::from(failure.exit_code())
}

fn run(out: &mut Output) -> Outcome {
    // db_bench's and YCSB's flags are parsed by their own rules, not by clap's.
    let mut words = std::env::args_os().skip(1);
    let own_rules = words
        .next()
        .filter(|word| word == "bench" || word == "ycsb");
    if let Some(command) = own_rules {
        let words: Result<Vec<String>, _> = words.map(|word| word.into_string()).collect();
        let words = words
            .map_err(|word| Failure::Usage(format!("the flag {} is not UTF-8", word.display())))?;
        return match command == "bench" {
            true => bench::bench(&words, out),
            false => ycsb::ycsb(&words, out),
        };
    }
    let arguments = Arguments::parse();
    out.set_json(arguments.place.json);
    carry_out(&arguments.place.with_environment(), arguments.command, out)
}

pub(crate) fn carry_out(place: &Place, command: Command, out: &mut Output) -> Outcome {
    match command {
        Command::Load(wanted) => load::load(place, &wanted, out),
        Command::Get { keys, at } => kv::get(place, &keys, at, out),
        Command::Put {
            key,
            value,
            literal,
            sync,
        } => match value == "-" && !literal {
            true => kv::put_input(place, &key, sync),
            false => kv::put(place, &key, &value, sync),
        },
        Command::Delete { key, sync } => kv::delete(place, &key, sync),
        Command::DeleteRange { from, to, sync } => kv::delete_range(place, &from, &to, sync),
        Command::Family { task } => families::family(place, task, out),
        Command::Ingest { files, move_files } => external::ingest(place, &files, move_files, out),
        Command::WriteTable {
            table,
            lines,
            format,
        } => external::write(place, &table, (&lines, format), out),
        Command::Scan(wanted) => scan::scan(place, &wanted, out),
        Command::Stats {
            property,
            prometheus,
        } => figures::stats(place, property.as_deref(), prometheus, out),
        Command::Top(wanted) => top::top(place, &wanted, out),
        Command::Follow(wanted) => follow::follow(place, &wanted, out),
        Command::Levels => levels::levels(place, out),
        Command::Du(wanted) => du::du(place, &wanted, out),
        Command::Approxsize { from, to } => {
            du::approxsize(place, from.as_deref(), to.as_deref(), out)
        }
        Command::Doctor => doctor::doctor(place, out),
        Command::DumpWal { file, keys_only } => {
            inspect::dump_wal(place, file.as_deref(), keys_only, out)
        }
        Command::Changes { from, follow } => changes::changes(place, from, follow, out),
        Command::KeepHistory { seconds, every } => history::keep(place, seconds, every),
        Command::History => history::history(place, out),
        Command::KeepChanges { seconds, bytes } => changes::keep(place, seconds, bytes),
        Command::DumpManifest { file } => inspect::dump_manifest(place, file.as_deref(), out),
        Command::DumpTable { file, entries } => tables::dump_table(place, &file, entries, out),
        Command::DumpBlob { file, entries } => blobs::dump_blob(place, &file, entries, out),
        Command::Verify => maintenance::verify(place, out),
        Command::Repair => maintenance::repair(place, out),
        Command::Explain { key } => figures::explain(place, key.as_deref(), out),
        Command::Compact {
            recode: true,
            compression,
            ..
        } => maintenance::recode(place, compression, out),
        Command::Compact { from, to, .. } => {
            maintenance::compact(place, from.as_deref(), to.as_deref(), out)
        }
        Command::Set { options, database } => settings::set(place, &options, database, out),
        Command::DeleteFiles { from, to, all } => {
            settings::delete_files(place, (from.as_deref(), to.as_deref()), all, out)
        }
        Command::Checkpoint { target } => maintenance::checkpoint(place, &target, out),
        Command::Backup { task } => backup::backup(place, task, out),
        Command::Restore(wanted) => backup::restore(place, &wanted, out),
        Command::Convert { to, out: target } => convert::convert(place, to, &target, out),
        Command::Bench { flags } => bench::bench(&flags, out),
        Command::Ycsb { words } => ycsb::ycsb(&words, out),
        Command::Gen { data } => generate::generate(&data, out),
        Command::Mongo(wanted) => mongo::mongo(place, &wanted, out),
        Command::Redis(wanted) => redis::redis(place, &wanted, out),
        Command::Demo(wanted) => demo::demo(place, &wanted, out),
        Command::Shell(wanted) => shell::shell(place, &wanted, out),
        Command::Completions { shell } => documents::completions(shell, out),
        Command::Man { dir } => documents::man(dir.as_deref(), out),
        Command::Lab { task } => lab::lab(place, &task, out),
    }
}
