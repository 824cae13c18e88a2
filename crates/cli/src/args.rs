//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

use crate::mongo_args::Mongo;
use drumlin::{Db, TableFormat};

use crate::backup::{BackupTask, Restore};
use crate::du::Du;
use crate::follow::Follow;
use crate::formats::EntryFormat;
use crate::shell::ShellTask;
use crate::top::Top;
use crate::units::parse_bytes;

const AFTER_HELP: &str = "\
Text: one entry a line, key TAB value. A backslash escapes \\t \\n \\r \\\\ and \\xNN; with --hex keys \
and values are 0x and two digits a byte.

Exit codes: 0 done; 1 not found; 2 usage; 3 damaged data or a failed check; 4 I/O, lock or disk \
space; 5 not supported; 6 anything else.";

/// A key-value store whose directories RocksDB can open.
#[derive(Debug, Parser)]
#[command(name = "drumlin", version, after_help = AFTER_HELP, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) place: Place,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Where, and how keys and values are written.
#[derive(Clone, Debug, Args)]
pub(crate) struct Place {
    /// Directory of the database; without it, what the environment's DRUMLIN_DB says.
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) db: Option<PathBuf>,
    /// Directory of its write-ahead log, where that is another one.
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) wal_dir: Option<PathBuf>,
    /// Keys and values are hex, in arguments, input and output.
    #[arg(long, global = true)]
    pub(crate) hex: bool,
    /// Column family.
    #[arg(long, global = true, value_name = "NAME", default_value = "default")]
    pub(crate) family: String,
    /// Seconds that what is written to the column family lives, 0 for ever: for a new one, or another time for one that
    /// has such a time.
    #[arg(long, global = true, value_name = "SECONDS")]
    pub(crate) ttl: Option<u32>,
    /// Print facts as JSON objects, one a line.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// The store that the shell has open.
    #[arg(skip)]
    pub(crate) held: Option<Db>,
}

/// The server of Redis's protocol.
#[derive(Clone, Debug, Args)]
pub(crate) struct Redis {
    /// Configuration file, in Redis's format and names. Flags go over it.
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Directory of the data; made if it is missing. Default: --db, or what FILE says, or the current one.
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Port to listen at; 0 takes a free one. Default: 6379.
    #[arg(long, value_name = "PORT")]
    pub(crate) port: Option<u16>,
    /// Addresses to listen at, in quotes where there are several. Default: the loopback.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) bind: Option<String>,
    /// Any value of the configuration, such as `appendfsync=always`. May be given again and again.
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) set: Vec<String>,
    /// Load this RDB file of Redis first, in place of keys that are there already; or its append-only file, or a directory of
    /// these, where there are no keys.
    #[arg(long, value_name = "PATH")]
    pub(crate) load: Option<PathBuf>,
    /// Write all keys and functions into this RDB file, which Redis 7.0 and later load, and end.
    #[arg(long, value_name = "RDB")]
    pub(crate) export: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Write entries into the database: `key TAB value` lines, CSV, JSON lines or length-prefixed bytes.
    Load(Load),
    /// Print the value of a key; of several, each with its key, as `key TAB value` lines.
    Get {
        /// The keys.
        #[arg(required = true, value_name = "KEY")]
        keys: Vec<String>,
        /// As it was at this time, in seconds since 1970, or so many before now where there is a minus; see keep-history.
        #[arg(long, value_name = "TIME", allow_negative_numbers = true)]
        at: Option<i64>,
    },
    /// Set a key to a value.
    Put {
        /// The key.
        key: String,
        /// The value; `-` reads it from standard input: every byte as it is, or digits with --hex.
        value: String,
        /// Take a VALUE of `-` for the value itself.
        #[arg(long)]
        literal: bool,
        /// Return only when the write outlives a power cut.
        #[arg(long)]
        sync: bool,
    },
    /// Remove a key.
    Delete {
        /// The key.
        key: String,
        /// Return only when the write outlives a power cut.
        #[arg(long)]
        sync: bool,
    },
    /// Remove every key from FROM up to TO, which stays.
    DeleteRange {
        /// First key, inclusive.
        from: String,
        /// End, exclusive.
        to: String,
        /// Return only when the write outlives a power cut.
        #[arg(long)]
        sync: bool,
    },
    /// List, make and drop column families.
    Family {
        #[command(subcommand)]
        task: FamilyTask,
    },
    /// Take table files into the family, all or none; where they overlap, later ones win, and all win over what is there.
    Ingest {
        /// Tables, of `write-table`, of SstFileWriter, or of `ldb write_extern_sst`.
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        /// Remove the files afterwards.
        #[arg(long = "move")]
        move_files: bool,
    },
    /// Write `key TAB value` lines, in key order, each key once, into a table file outside the database, for `ingest`.
    WriteTable {
        /// The table file.
        table: PathBuf,
        /// A file of lines; `-` is standard input.
        #[arg(default_value = "-")]
        lines: PathBuf,
        /// How the entries are laid out.
        #[arg(long, value_enum, default_value = "text")]
        format: EntryFormat,
    },
    /// Print entries in key order: as `key TAB value` lines, CSV, JSON lines or length-prefixed bytes.
    Scan(Scan),
    /// Print the tree, the memory and the counters.
    Stats {
        /// Print this property alone, such as `rocksdb.estimate-num-keys`.
        property: Option<String>,
        /// Print all figures as Prometheus reads them.
        #[arg(long, conflicts_with = "property")]
        prometheus: bool,
    },
    /// Show writes, reads, levels, debt, memory and what runs, second by second, of a live process or of a directory.
    Top(Top),
    /// Follow the database as another process writes it, and print how far behind that is, line by line, until SIGTERM.
    Follow(Follow),
    /// Draw the tree.
    Levels,
    /// Print what groups of keys take on disk, and how long keys and values are, by the indexes of tables.
    Du(Du),
    /// Print about how many bytes a range of keys takes on disk.
    Approxsize {
        /// First key, inclusive.
        #[arg(long)]
        from: Option<String>,
        /// End, exclusive.
        #[arg(long)]
        to: Option<String>,
    },
    /// Print what is odd about the directory, the most dangerous first. Changes nothing.
    Doctor,
    /// Print the records of a log file.
    DumpWal {
        /// The log file; without it, every log of --db.
        file: Option<PathBuf>,
        /// Leave out values.
        #[arg(long)]
        keys_only: bool,
    },
    /// Print what was changed, in order, of a database that keeps that (see keep-changes). Another process may be
    /// writing it.
    Changes {
        /// The sequence number to begin with. Default: the first there is.
        #[arg(long, value_name = "SEQNO")]
        from: Option<u64>,
        /// Go on with what is written from now on, until SIGTERM.
        #[arg(long)]
        follow: bool,
    },
    /// Keep changes for those who follow them; without a bound, end that.
    KeepChanges {
        /// At least so many seconds.
        #[arg(long, value_name = "N")]
        seconds: Option<u64>,
        /// As long as the archive has no more bytes.
        #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
        bytes: Option<u64>,
    },
    /// Keep the past for --at of get and scan; without a number of seconds, end that.
    KeepHistory {
        /// For so many seconds.
        #[arg(long, value_name = "N")]
        seconds: Option<u64>,
        /// With a moment that can be read at every so many seconds. Default: a hundredth of the others.
        #[arg(long, value_name = "N", requires = "seconds")]
        every: Option<u64>,
    },
    /// Print the moments of the past that can be read at.
    History,
    /// Print the version edits of a MANIFEST.
    DumpManifest {
        /// The MANIFEST; without it, the current one of --db.
        file: Option<PathBuf>,
    },
    /// Print the properties of a table file, and its entries.
    DumpTable {
        /// The table file.
        file: PathBuf,
        /// Print the entries too.
        #[arg(long)]
        entries: bool,
    },
    /// Print the header of a blob file, and the values in it.
    DumpBlob {
        /// The blob file.
        file: PathBuf,
        /// Print key, place and value of each entry too.
        #[arg(long)]
        entries: bool,
    },
    /// Read every table whole, and the models and blobs it refers to, and check all of it.
    Verify,
    /// Rebuild the MANIFEST from the tables; damaged files are moved to `lost`.
    Repair,
    /// Say why a write would wait now, and which tables a read of KEY would search.
    Explain {
        /// The key a read asks for.
        key: Option<String>,
    },
    /// Compact the family, or a range of it, into its deepest level.
    Compact {
        /// First key of the range.
        #[arg(long)]
        from: Option<String>,
        /// Last key of the range.
        #[arg(long)]
        to: Option<String>,
        /// Write everything anew in the family's format, under a model learned anew if that pays.
        #[arg(long, conflicts_with_all = ["from", "to"])]
        recode: bool,
        /// Change the family's format first.
        #[arg(long, value_enum, requires = "recode")]
        compression: Option<Compressing>,
    },
    /// Set options of the family by RocksDB's names, and write them into the OPTIONS file: all or none.
    Set {
        /// Such as `write_buffer_size=64M`.
        #[arg(required = true, value_name = "NAME=VALUE")]
        options: Vec<String>,
        /// Options of the database instead, such as `max_open_files=1000`.
        #[arg(long)]
        database: bool,
    },
    /// Take out whole tables whose keys are all within a range, with everything in them.
    DeleteFiles {
        /// First key, inclusive.
        #[arg(long)]
        from: Option<String>,
        /// Last key, inclusive.
        #[arg(long)]
        to: Option<String>,
        /// Take out everything that is in levels below L0, where neither end is named.
        #[arg(long)]
        all: bool,
    },
    /// Make a copy that shares the table files.
    Checkpoint {
        /// The copy's directory; must not exist. On another file system the tables are copied.
        target: PathBuf,
    },
    /// Make, list, check and remove backups, in the layout of RocksDB's.
    Backup {
        #[command(subcommand)]
        task: BackupTask,
    },
    /// Bring a backup back as the database of --db; WAL files go to --wal-dir, if that is named.
    Restore(Restore),
    /// Copy the database into another format.
    Convert {
        /// The format of the copy.
        #[arg(long, value_enum)]
        to: Format,
        /// The copy's directory; must not exist.
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
    },
    /// Run db_bench's workloads, under its flags (see `drumlin bench --help`).
    #[command(disable_help_flag = true)]
    Bench {
        /// db_bench's flags.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        flags: Vec<String>,
    },
    /// Run YCSB's workloads (see `drumlin ycsb --help`).
    #[command(disable_help_flag = true)]
    Ycsb {
        /// load or run, and YCSB's arguments.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
    /// Generate data.
    Gen {
        #[command(subcommand)]
        data: Data,
    },
    /// Load lineitem rows, read them back at random beside a writer, check every byte, and report.
    Demo(Demo),
    /// Serve MongoDB's clients from a directory, until SIGTERM.
    Mongo(Mongo),
    /// Serve Redis clients from a directory, until SIGTERM or SHUTDOWN.
    Redis(Redis),
    /// Run commands on one open store: typed with completion and history, or from standard input.
    Shell(ShellTask),
    /// Print the completions of this command for a shell.
    Completions {
        /// The shell.
        #[arg(value_enum)]
        shell: Shell,
    },
    /// Print this command's manual page, or write all of them into a directory.
    Man {
        /// Where the pages go, one for each command.
        #[arg(value_name = "DIR")]
        dir: Option<PathBuf>,
    },
    /// Measurements that anyone can repeat.
    Lab {
        #[command(subcommand)]
        task: Lab,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum FamilyTask {
    /// Print their names, one a line.
    List,
    /// Make one.
    Create {
        /// Its name.
        name: String,
    },
    /// Drop one, with all that is in it.
    Drop {
        /// Its name.
        name: String,
    },
    /// Make a directory that is a database of one family alone, for `import`.
    Export {
        /// Its name.
        name: String,
        /// The directory; must not exist. On another file system the tables are copied.
        target: PathBuf,
    },
    /// Make a family of the tables of an export.
    Import {
        /// The new family's name.
        name: String,
        /// The export, or a database of ours or RocksDB's all of whose writes are in tables: its family `default` is taken.
        source: PathBuf,
        /// Remove the tables there afterwards.
        #[arg(long = "move")]
        move_files: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Lab {
    /// Look-ups in memory beside a writer.
    R1(Measure),
    /// Reviews, read uniformly and by Zipf's law under ever less memory.
    R2 {
        #[command(flatten)]
        measure: Measure,
        /// Through the document server, over 8 connections, beside WiredTiger in a process of its own without one, and beside the server whose
        /// command line is in the variable DRUMLIN_MONGO_PEER, with {port}, {dir} and {cache_mb} in it.
        #[arg(long)]
        servers: bool,
    },
    /// db_bench's lines, and their cost as the store grows.
    R3(Measure),
    /// Writes of large values while everything is compacted.
    R4 {
        #[command(flatten)]
        measure: Measure,
        /// Through the Redis server, over 2 x 20 connections, beside the engine alone and Kvrocks's way on RocksDB.
        #[arg(long)]
        server: bool,
    },
    /// TPC-H lineitem, read while it is loaded and when it does not fit in memory.
    R5(Measure),
    /// The harness: RocksDB measured by the laboratory and by its own db_bench.
    Check(Measure),
    /// db_bench's lines as asked for; at several sizes also their cost as the store grows.
    Compare(Compare),
    /// Random writes that go on, with everything compacted by hand in the middle.
    Stall(Watch),
    /// Many overwrites of a filled store: does it keep its pace?
    Sustain(Watch),
    /// The side with the engine in it; started by the others.
    #[command(hide = true)]
    Agent {
        /// The engine is behind a server.
        #[arg(long)]
        server: Option<ServerKind>,
    },
    /// Run a program with limited memory (page cache included) and limited reads from the disk.
    Limited(Limited),
}

/// The servers that the laboratory knows.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ServerKind {
    Redis,
    Mongo,
    MongoPeer,
}

#[derive(Debug, Args)]
pub(crate) struct Measure {
    /// Times the default size, which fits two cores and ten minutes.
    #[arg(long, default_value_t = 1.0)]
    pub(crate) scale: f64,
    /// Seconds of each timed stage.
    #[arg(long, default_value_t = 4)]
    pub(crate) seconds: u64,
    #[command(flatten)]
    pub(crate) field: Field,
    /// Directory of documentation that the reviews of r2 are made of.
    #[arg(long, value_name = "DIR")]
    pub(crate) docs: Option<PathBuf>,
    /// Records of r2 instead of reviews, all of them: lines of a key, a TAB and a value, as `gen` writes them.
    /// A key that comes twice is refused.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["docs", "scale"])]
    pub(crate) records: Option<PathBuf>,
}

/// The engines to measure, the rounds, and the directory.
#[derive(Debug, Args)]
pub(crate) struct Field {
    /// How often all of it is done; without it 3 times, 2 of r4, 7 of check, 1 of stall and sustain.
    #[arg(long)]
    pub(crate) rounds: Option<usize>,
    /// The other engines: rocksdb, rocksdb-blobs, rocksdb-plain, kvrocks-replayed, kvrocks-replayed-blobs, leveldb, fjall, redb, lmdb, wiredtiger,
    /// db_bench; none.
    #[arg(long, value_delimiter = ',')]
    pub(crate) against: Option<Vec<String>>,
    /// The program with the other engines in it.
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) peers: Option<PathBuf>,
    /// RocksDB's own benchmark.
    #[arg(long, value_name = "PROGRAM", default_value = "db_bench")]
    pub(crate) db_bench: PathBuf,
    /// Directory for stores and data; one of the laboratory's own is made in it, and removed.
    #[arg(long, default_value = "/tmp")]
    pub(crate) dir: PathBuf,
    /// The report goes to this path with .html and .json; without it, to lab-r1 and so on here.
    #[arg(long)]
    pub(crate) out: Option<PathBuf>,
}

/// The lines of `lab compare` unless told otherwise.
const LINES: &str = "fillseq,fillrandom,overwrite,readrandom,readseq,readreverse,seekrandom,\
                     multireadrandom,compact,readrandom,readseq,readreverse,seekrandom,\
                     fillrandom@2,readrandom@2";

#[derive(Debug, Args)]
pub(crate) struct Compare {
    /// The lines; `name@2` runs two threads, `name:disable_wal` writes without the log.
    #[arg(long, default_value = LINES)]
    pub(crate) benchmarks: String,
    /// Entries, and operations a thread; several numbers are several stores.
    #[arg(long, value_delimiter = ',', default_value = "10000000")]
    pub(crate) num: Vec<u64>,
    /// Bytes of the block cache.
    #[arg(long, default_value = "1GiB", value_parser = parse_bytes)]
    pub(crate) cache_size: u64,
    /// Bytes of a memtable.
    #[arg(long, default_value = "256MiB", value_parser = parse_bytes)]
    pub(crate) write_buffer_size: u64,
    /// Keys of one multi-get in multireadrandom.
    #[arg(long, default_value_t = 32)]
    pub(crate) multiread_batch: usize,
    #[command(flatten)]
    pub(crate) field: Field,
    /// More of db_bench's flags, after `--`.
    #[arg(last = true)]
    pub(crate) flags: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Watch {
    /// Bytes of a value; several sizes are several stores.
    #[arg(long, value_delimiter = ',', default_value = "10000")]
    pub(crate) value_size: Vec<u64>,
    /// Bytes of keys and values in the store once every key was written.
    #[arg(long, default_value = "5GB", value_parser = parse_bytes)]
    pub(crate) store_bytes: u64,
    /// Writing threads.
    #[arg(long, default_value_t = 2)]
    pub(crate) threads: usize,
    /// Seconds; without it 60 of stall, and as long as --writes take of sustain.
    #[arg(long)]
    pub(crate) duration: Option<u64>,
    /// Overwrites of all threads (sustain).
    #[arg(long, default_value_t = 20_000_000, conflicts_with = "duration")]
    pub(crate) writes: u64,
    #[command(flatten)]
    pub(crate) field: Field,
    /// More of db_bench's flags, after `--`.
    #[arg(last = true)]
    pub(crate) flags: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Limited {
    /// Bytes of memory, page cache included.
    #[arg(long, value_parser = parse_bytes)]
    pub(crate) memory: Option<u64>,
    /// Reads a second from the disk that holds --db (or the working directory).
    #[arg(long)]
    pub(crate) read_iops: Option<u64>,
    /// The program and its arguments.
    #[arg(last = true, required = true)]
    pub(crate) command: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Load {
    /// A file; `-` is standard input.
    pub(crate) file: PathBuf,
    /// Return from each batch only when it outlives a power cut.
    #[arg(long)]
    pub(crate) sync: bool,
    /// Write without the log; the rows are safe when the command ends.
    #[arg(long)]
    pub(crate) no_wal: bool,
    /// Bytes of rows in one batch.
    #[arg(long, default_value = "64KiB", value_parser = parse_bytes)]
    pub(crate) batch_bytes: u64,
    /// The family's format from now on: compaction rewrites existing tables over time, `compact
    /// --recode` at once.
    #[arg(long, value_enum)]
    pub(crate) compression: Option<Compressing>,
    /// Count the entries of the family afterwards: rows with the same key are one entry.
    #[arg(long)]
    pub(crate) count: bool,
    /// How the entries are laid out.
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: EntryFormat,
    /// Go on where a line is no entry: the first ones are told, all are counted.
    #[arg(long)]
    pub(crate) skip_bad: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Scan {
    /// First key, inclusive.
    #[arg(long)]
    pub(crate) from: Option<String>,
    /// End, exclusive.
    #[arg(long)]
    pub(crate) to: Option<String>,
    /// Only keys that begin so.
    #[arg(long)]
    pub(crate) prefix: Option<String>,
    /// From the last key to the first.
    #[arg(long)]
    pub(crate) reverse: bool,
    /// At most so many entries.
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<u64>,
    /// Print keys alone.
    #[arg(long)]
    pub(crate) keys_only: bool,
    /// Print only how many entries there are.
    #[arg(long)]
    pub(crate) count: bool,
    /// Print after each entry when it was written, in seconds since 1970; of a family with a time to live.
    #[arg(long, conflicts_with = "count")]
    pub(crate) timestamp: bool,
    /// As it was at this time, in seconds since 1970, or so many before now where there is a minus; see keep-history.
    #[arg(long, value_name = "TIME", allow_negative_numbers = true)]
    pub(crate) at: Option<i64>,
    /// How the entries are laid out; --json is the same as `json`.
    #[arg(long, value_enum)]
    pub(crate) format: Option<EntryFormat>,
}

/// How a family's tables are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Compressing {
    /// Block by block: RocksDB's tables.
    Blocks,
    /// Each row by itself, in searchable tables in the last levels.
    Searchable,
}

impl Compressing {
    /// The tables it stands for.
    pub(crate) fn format(self) -> TableFormat {
        match self {
            Self::Blocks => TableFormat::Block,
            Self::Searchable => TableFormat::Searchable,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Leveldb,
    Rocksdb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Data {
    /// TPC-H lineitem with wide comments; the key is order, part and supplier number.
    Lineitem(GenLineItem),
    /// English prose of about 1 KB a record, out of documentation.
    English(GenSet),
    /// Debian's package index, a stanza a record.
    Packages(GenSet),
    /// Paths of Debian's installed packages, and which packages have them.
    Contents(GenSet),
    /// Product reviews of eight fields by a Markov chain over English text.
    Reviews(GenSet),
    /// Bytes that do not compress.
    Random(GenSet),
}

#[derive(Debug, Args)]
pub(crate) struct GenSet {
    /// Where the lines go; `-` is standard output.
    #[arg(long, default_value = "-")]
    pub(crate) out: PathBuf,
    /// About how many bytes of keys and values; sets taken from the machine may have less.
    #[arg(long, default_value = "100MB", value_parser = parse_bytes)]
    pub(crate) bytes: u64,
    /// Changes the generated data.
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Directory of documentation, for `english` and `reviews` (see crates/bench/english.sh).
    #[arg(long, value_name = "DIR")]
    pub(crate) docs: Option<PathBuf>,
    /// Print only records, bytes and checksum.
    #[arg(long)]
    pub(crate) totals: bool,
}

#[derive(Debug, Args)]
pub(crate) struct GenLineItem {
    /// Where the lines go; `-` is standard output.
    #[arg(long, default_value = "-")]
    pub(crate) out: PathBuf,
    /// Stop after so many rows.
    #[arg(long)]
    pub(crate) rows: Option<u64>,
    /// Stop before keys and values have more than so many bytes.
    #[arg(long, value_parser = parse_bytes)]
    pub(crate) bytes: Option<u64>,
    #[command(flatten)]
    pub(crate) shape: LineItemShape,
    /// The number of one of --parts equal parts of the orders.
    #[arg(long, default_value_t = 1)]
    pub(crate) part: i32,
    /// Into how many parts the orders are cut.
    #[arg(long, default_value_t = 1)]
    pub(crate) parts: i32,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct LineItemShape {
    /// TPC-H scale factor; 1 is 6 million rows. Without it, the smallest whole one that suffices.
    #[arg(long)]
    pub(crate) scale_factor: Option<f64>,
    /// Average bytes of a comment.
    #[arg(long, default_value_t = 512)]
    pub(crate) comment_bytes: u32,
    /// Bytes of the text pool that comments are cut from. Without it 300 MiB, as in TPC-H; for
    /// the demo, in proportion to the data as in TPC-H at 554 GB.
    #[arg(long, value_parser = parse_bytes)]
    pub(crate) pool_bytes: Option<u64>,
    /// Cut comments from the pool, or make each afresh.
    #[arg(long, value_enum, default_value_t = Text::Pool)]
    pub(crate) text: Text,
    /// Changes fresh text.
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Text {
    Pool,
    Fresh,
}

#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// Bytes of keys and values to load.
    #[arg(long, default_value = "2GB", value_parser = parse_bytes)]
    pub(crate) bytes: u64,
    /// Seconds of random reads.
    #[arg(long, default_value_t = 20)]
    pub(crate) seconds: u64,
    /// Reading threads.
    #[arg(long, default_value_t = 2)]
    pub(crate) threads: usize,
    /// Rows a second the writer adds meanwhile; 0: as many as it can.
    #[arg(long, default_value_t = 0)]
    pub(crate) write_rate: u64,
    /// Bytes for everything the database keeps in memory; without it, the engine's choice.
    #[arg(long, value_parser = parse_bytes)]
    pub(crate) memory_budget: Option<u64>,
    /// none, snappy, zlib, bzip2, lz4, lz4hc or zstd.
    #[arg(long, default_value = "lz4")]
    pub(crate) compression: String,
    /// Compact everything between loading and reading.
    #[arg(long)]
    pub(crate) compact: bool,
    #[command(flatten)]
    pub(crate) shape: LineItemShape,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn parse(line: &str) -> Result<Arguments, clap::Error> {
        Arguments::try_parse_from(line.split(' '))
    }

    #[test]
    fn the_definition_is_sound() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn the_place_may_stand_before_or_after_the_command() {
        for line in [
            "drumlin --db /d --hex get 0x61",
            "drumlin get --hex 0x61 --db /d",
        ] {
            let arguments = parse(line).expect("sound arguments");
            assert_eq!(arguments.place.db.as_deref(), Some("/d".as_ref()), "{line}");
            assert!(arguments.place.hex);
            assert_eq!(arguments.place.family, "default");
            assert!(matches!(arguments.command, Command::Get { keys, .. } if keys == ["0x61"]));
        }
    }

    #[test]
    fn sizes_have_units() {
        let arguments = parse("drumlin demo --db x --bytes 1.5GB --seconds 3 --pool-bytes 700k");
        let Ok(Command::Demo(demo)) = arguments.map(|arguments| arguments.command) else {
            panic!("sound arguments");
        };
        assert_eq!((demo.bytes, demo.seconds), (1_500_000_000, 3));
        assert_eq!(demo.shape.pool_bytes, Some(700_000));
    }

    #[test]
    fn usage_mistakes_have_exit_code_2() {
        for line in [
            "drumlin",
            "drumlin gte x",
            "drumlin convert --to lmdb --out x",
        ] {
            let error = parse(line).expect_err("a mistake");
            assert_eq!(error.exit_code(), 2, "{line}");
        }
    }
}
