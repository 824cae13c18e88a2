//! Arguments as logs and monitors show them: passwords are not among them.

use drumlin_resp::Args;

const REDACTED: &[u8] = b"(redacted)";
/// Names of the configuration whose values are secrets.
const SECRET_NAMES: [&str; 5] = [
    "masterauth",
    "masteruser",
    "requirepass",
    "tls-key-file-pass",
    "tls-client-key-file-pass",
];

/// The arguments of the command called `name`, its secrets replaced.
pub(crate) fn shown<'a>(name: &str, args: Args<'a>) -> Vec<&'a [u8]> {
    let mut shown: Vec<&[u8]> = args.iter().collect();
    let is = |at: usize, word: &str| {
        args.get(at)
            .is_some_and(|arg| arg.eq_ignore_ascii_case(word.as_bytes()))
    };
    let secret: Vec<usize> = match name {
        "auth" => (1..args.len()).collect(),
        "acl" if is(1, "setuser") => (2..args.len()).collect(),
        "hello" => (2..args.len())
            .filter(|at| is(*at, "auth"))
            .flat_map(|at| [at + 1, at + 2])
            .collect(),
        "config" if is(1, "set") => (2..args.len())
            .step_by(2)
            .filter(|at| SECRET_NAMES.iter().any(|name| is(*at, name)))
            .map(|at| at + 1)
            .collect(),
        "migrate" => (6..args.len())
            .flat_map(|at| match () {
                () if is(at, "auth") => vec![at + 1],
                () if is(at, "auth2") => vec![at + 1, at + 2],
                () => Vec::new(),
            })
            .collect(),
        _ => Vec::new(),
    };
    for at in secret {
        if let Some(arg) = shown.get_mut(at) {
            *arg = REDACTED;
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use drumlin_resp::OwnedArgs;

    use super::shown;

    /// Goal: no password is shown. Method: commands that carry one, as Redis 7.0.15 logs them.
    #[test]
    fn passwords_are_not_shown() {
        for (line, wanted) in [
            ("auth pw", "auth (redacted)"),
            ("auth user pw", "auth (redacted) (redacted)"),
            (
                "hello 3 auth u pw setname n",
                "hello 3 auth (redacted) (redacted) setname n",
            ),
            (
                "config set port 1 requirepass pw",
                "config set port 1 requirepass (redacted)",
            ),
            ("config get requirepass", "config get requirepass"),
            ("acl setuser u >pw", "acl setuser (redacted) (redacted)"),
            ("acl list", "acl list"),
            (
                "migrate h 1 k 0 1 AUTH2 u pw",
                "migrate h 1 k 0 1 AUTH2 (redacted) (redacted)",
            ),
            ("set auth pw", "set auth pw"),
        ] {
            let args: OwnedArgs = line.split(' ').map(str::as_bytes).collect();
            let name = line.split(' ').next().unwrap_or_default();
            let words = shown(name, args.args());
            assert_eq!(words.join(&b' '), wanted.as_bytes(), "{line}");
        }
    }
}
