//! The first line of scripts and libraries, `#!lua name=value`, and the flags of functions.

use drumlin_resp::split_words;

use crate::facts::Flags;

/// What a script says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct ScriptFlags(u8);

impl ScriptFlags {
    pub(crate) const NO_WRITES: Self = Self(1);
    pub(crate) const ALLOW_OOM: Self = Self(1 << 1);
    const ALLOW_STALE: Self = Self(1 << 2);
    /// It has no first line: what it may do shows when it does it.
    pub(crate) const UNDECLARED: Self = Self(1 << 7);

    const NAMES: [(Self, &'static str); 5] = [
        (Self::NO_WRITES, "no-writes"),
        (Self::ALLOW_OOM, "allow-oom"),
        (Self::ALLOW_STALE, "allow-stale"),
        (Self(1 << 3), "no-cluster"),
        (Self(1 << 4), "allow-cross-slot-keys"),
    ];

    /// The flag called `name`.
    pub(crate) fn named(name: &[u8]) -> Option<Self> {
        let mut named = Self::NAMES.into_iter();
        let found = named.find(|(_, known)| known.as_bytes() == name);
        found.map(|(flag, _)| flag)
    }

    pub(crate) fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether it may need more memory: what does not write needs none.
    pub(crate) fn may_need_memory(self) -> bool {
        !self.has(Self::ALLOW_OOM) && !self.has(Self::NO_WRITES)
    }

    /// The flags of a command that has `flags` and calls a script which declares these.
    pub(crate) fn of_command(self, flags: Flags) -> Flags {
        let writes = !self.has(Self::NO_WRITES);
        let own = [
            (Flags::DENYOOM, self.may_need_memory()),
            (Flags::WRITE, writes),
            (Flags::STALE, self.has(Self::ALLOW_STALE)),
        ];
        own.into_iter().fold(
            flags.and(Flags::DECLARED),
            |flags, (flag, is_set)| match is_set {
                true => flags.and(flag),
                false => flags.without(flag),
            },
        )
    }

    /// The names of those that are set.
    pub(crate) fn names(self) -> Vec<&'static str> {
        let named = Self::NAMES.into_iter();
        let set = named.filter(|(flag, _)| self.has(*flag));
        set.map(|(_, name)| name).collect()
    }
}

/// The flags of a script for EVAL, and where its code begins.
///
/// # Errors
/// The error's text.
pub(crate) fn of_script(body: &[u8]) -> Result<(ScriptFlags, usize), String> {
    if !body.starts_with(b"#!") {
        return Ok((ScriptFlags::UNDECLARED, 0));
    }
    let end = body.iter().position(|byte| *byte == b'\n');
    let end = end.ok_or("Invalid script shebang")?;
    let words = split_words(body.get(..end).unwrap_or_default());
    let words = words.filter(|words| !words.is_empty());
    let words = words.ok_or("Invalid engine in script shebang")?;
    let mut words = words.iter();
    let engine = words.next().map(Vec::as_slice).unwrap_or_default();
    if engine != b"#!lua" {
        let engine = String::from_utf8_lossy(engine);
        return Err(format!("Unexpected engine in script shebang: {engine}"));
    }
    let mut flags = ScriptFlags::default();
    for word in words {
        let Some(list) = word.strip_prefix(b"flags=") else {
            let word = String::from_utf8_lossy(word);
            return Err(format!("Unknown lua shebang option: {word}"));
        };
        for name in list
            .split(|byte| *byte == b',')
            .filter(|_| !list.is_empty())
        {
            let flag = ScriptFlags::named(name).ok_or_else(|| {
                let name = String::from_utf8_lossy(name);
                format!("Unexpected flag in script shebang: {name}")
            })?;
            flags = flags.and(flag);
        }
    }
    Ok((flags, end))
}

/// The first line of a library: its engine, its name, and where its code begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LibraryHead {
    pub(crate) engine: Vec<u8>,
    pub(crate) name: Vec<u8>,
    pub(crate) code_at: usize,
}

/// The head of a library's text.
///
/// # Errors
/// The error's text.
pub(crate) fn of_library(text: &[u8]) -> Result<LibraryHead, String> {
    if !text.starts_with(b"#!") {
        return Err("Missing library metadata".into());
    }
    let end = text.iter().position(|byte| *byte == b'\n');
    let code_at = end.ok_or("Invalid library metadata")?;
    let words = split_words(text.get(..code_at).unwrap_or_default());
    let words = words.filter(|words| !words.is_empty());
    let words = words.ok_or("Invalid library metadata")?;
    let mut words = words.iter();
    let engine = words.next().and_then(|word| word.get(2..));
    let mut name: Option<Vec<u8>> = None;
    for word in words {
        let is_name = word
            .get(..5)
            .is_some_and(|it| it.eq_ignore_ascii_case(b"name="));
        if !is_name {
            let word = String::from_utf8_lossy(word);
            return Err(format!("Invalid metadata value given: {word}"));
        }
        if name.is_some() {
            return Err("Invalid metadata value, name argument was given multiple times".into());
        }
        name = word.get(5..).map(<[u8]>::to_vec);
    }
    Ok(LibraryHead {
        engine: engine.unwrap_or_default().to_vec(),
        name: name.ok_or("Library name was not given")?,
        code_at,
    })
}

/// Whether a library or a function may have this name.
pub(crate) fn is_name(name: &[u8]) -> bool {
    let fits = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    !name.is_empty() && name.iter().all(fits)
}

/// The error of a name that is none.
pub(crate) const BAD_NAME: &str = "Library names can only contain letters, numbers, or underscores(_) and must be at \
                                   least one character long";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_says_what_a_script_may_do() {
        assert_eq!(of_script(b"return 1"), Ok((ScriptFlags::UNDECLARED, 0)));
        assert_eq!(of_script(b"#!lua\nreturn 1"), Ok((ScriptFlags(0), 5)));
        let flags = of_script(b"#!lua flags=no-writes,allow-stale\nreturn 1");
        assert_eq!(flags, Ok((ScriptFlags(5), 33)));
        let error = |text: &[u8]| of_script(text).unwrap_err();
        assert_eq!(error(b"#!lua"), "Invalid script shebang");
        assert_eq!(
            error(b"#!not-lua\n"),
            "Unexpected engine in script shebang: #!not-lua"
        );
        assert_eq!(
            error(b"#!lua badger=data\n"),
            "Unknown lua shebang option: badger=data"
        );
        assert_eq!(
            error(b"#!lua flags=a\n"),
            "Unexpected flag in script shebang: a"
        );
    }

    #[test]
    fn the_first_line_names_a_library() {
        let head = of_library(b"#!lua name=mine\nx").unwrap();
        assert_eq!(
            (head.engine, head.name, head.code_at),
            (b"lua".to_vec(), b"mine".to_vec(), 15)
        );
        let error = |text: &[u8]| of_library(text).unwrap_err();
        assert_eq!(error(b"#!lua\n"), "Library name was not given");
        assert_eq!(error(b"x"), "Missing library metadata");
        assert_eq!(
            error(b"#!lua name=a foo=b\n"),
            "Invalid metadata value given: foo=b"
        );
    }
}
