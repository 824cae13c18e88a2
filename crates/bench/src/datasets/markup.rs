//! The text of a page without its markup. Good enough for documentation: no page is refused, and a page that is
//! mangled is not taken for prose afterwards. Pure functions, linear in the page.

/// Elements whose text is not shown, or is code.
const HIDDEN: [&str; 8] = [
    "script",
    "style",
    "pre",
    "head",
    "screen",
    "programlisting",
    "synopsis",
    "svg",
];
/// Elements within a sentence; any other ends a paragraph. Of HTML, of Mallard and of DocBook.
const INLINE: [&str; 46] = [
    "a",
    "b",
    "i",
    "u",
    "s",
    "em",
    "strong",
    "code",
    "span",
    "tt",
    "var",
    "kbd",
    "cite",
    "q",
    "abbr",
    "samp",
    "font",
    "small",
    "big",
    "sub",
    "sup",
    "dfn",
    "ins",
    "del",
    "acronym",
    "mark",
    "img",
    "wbr",
    "gui",
    "guiseq",
    "app",
    "link",
    "file",
    "cmd",
    "key",
    "keyseq",
    "emphasis",
    "literal",
    "filename",
    "command",
    "option",
    "ulink",
    "xref",
    "guilabel",
    "guimenu",
    "replaceable",
];
/// An entity's name is not longer.
const ENTITY_BYTES_MAX: usize = 10;

/// The text of an HTML or XML page, empty lines between its blocks.
pub(super) fn strip_tags(page: &str) -> String {
    let mut text = String::with_capacity(page.len() / 2);
    let mut rest = page;
    let mut hidden: Option<&str> = None;
    while let Some(open) = rest.find('<') {
        let (before, tag) = rest.split_at(open);
        if hidden.is_none() {
            push_entities(before, &mut text);
        }
        let Some(end) = tag.find('>') else {
            return text;
        };
        let (inside, after) = tag.split_at(end);
        rest = after.get(1..).unwrap_or_default();
        let inside = inside.trim_start_matches('<');
        let (is_end, name) = inside
            .strip_prefix('/')
            .map_or((false, inside), |name| (true, name));
        let name = name
            .split(|c: char| !c.is_ascii_alphanumeric())
            .next()
            .unwrap_or_default();
        let name = name.to_ascii_lowercase();
        match hidden {
            Some(waited) if is_end && waited == name => hidden = None,
            // An element that ends where it begins hides nothing.
            None if !is_end && !inside.ends_with('/') => {
                hidden = HIDDEN.into_iter().find(|hide| *hide == name);
            }
            _ => {}
        }
        if hidden.is_none() && !INLINE.contains(&name.as_str()) {
            text.push_str("\n\n");
        }
    }
    if hidden.is_none() {
        push_entities(rest, &mut text);
    }
    text
}

/// Appends `piece` to `text`, its entities as the characters they stand for. An unknown one stays.
fn push_entities(piece: &str, text: &mut String) {
    let mut rest = piece;
    while let Some(at) = rest.find('&') {
        let (before, entity) = rest.split_at(at);
        text.push_str(before);
        let end = entity
            .bytes()
            .take(ENTITY_BYTES_MAX)
            .position(|byte| byte == b';');
        let name = end.and_then(|end| entity.get(1..end)).unwrap_or_default();
        if push_entity(name, text) {
            rest = entity.get(name.len() + 2..).unwrap_or_default();
        } else {
            text.push('&');
            rest = entity.get(1..).unwrap_or_default();
        }
    }
    text.push_str(rest);
}

/// Appends the text of entity `name`, and returns whether it is known.
fn push_entity(name: &str, text: &mut String) -> bool {
    let plain = match name {
        "amp" => "&",
        "lt" => "<",
        "gt" => ">",
        "quot" | "ldquo" | "rdquo" => "\"",
        "apos" | "lsquo" | "rsquo" => "'",
        "nbsp" => " ",
        "mdash" | "ndash" => "-",
        "hellip" => "...",
        _ => {
            let Some(number) = name.strip_prefix('#') else {
                return false;
            };
            let code = match number.strip_prefix(['x', 'X']) {
                Some(digits) => u32::from_str_radix(digits, 16),
                None => number.parse(),
            };
            let Some(character) = code.ok().and_then(char::from_u32) else {
                return false;
            };
            text.push(character);
            return true;
        }
    };
    text.push_str(plain);
    true
}

/// The text of Perl's documentation: its commands end a paragraph, its formatting codes go.
pub(super) fn strip_pod(page: &str) -> String {
    let mut text = String::with_capacity(page.len());
    let mut is_pod = false;
    for line in page.lines() {
        if line.starts_with('=') {
            is_pod = !line.starts_with("=cut");
            text.push('\n');
        } else if is_pod && line.starts_with([' ', '\t']) {
            // Code.
            text.push('\n');
        } else if is_pod {
            push_pod_line(line, &mut text);
            text.push('\n');
        }
    }
    text
}

/// Appends `line` without its formatting codes, a capital and text in angle brackets.
fn push_pod_line(line: &str, text: &mut String) {
    let mut open = 0usize;
    let mut before = ' ';
    for character in line.chars() {
        match character {
            '<' if before.is_ascii_uppercase() => {
                text.pop();
                open += 1;
            }
            '>' if open > 0 => open -= 1,
            _ => text.push(character),
        }
        before = character;
    }
}

/// The text of a manual page made with the macros of `man`: headings and unfilled lines end a paragraph.
/// Pages of `mdoc`, whose sentences are made of macros, come out as fragments.
pub(super) fn strip_roff(page: &str) -> String {
    let mut text = String::with_capacity(page.len());
    let mut is_filled = true;
    for line in page.lines() {
        let Some(request) = line.strip_prefix(['.', '\'']) else {
            if is_filled {
                push_roff(line, &mut text);
                text.push('\n');
            }
            continue;
        };
        let (name, arguments) = request
            .trim_start()
            .split_once([' ', '\t'])
            .unwrap_or((request.trim(), ""));
        match name {
            "nf" | "EX" => is_filled = false,
            "fi" | "EE" => is_filled = true,
            "B" | "I" | "R" | "SM" | "SB" => push_words(arguments, " ", &mut text),
            "BI" | "BR" | "IB" | "IR" | "RB" | "RI" => push_words(arguments, "", &mut text),
            _ if name.starts_with("\\\"") => {}
            _ => text.push('\n'),
        }
    }
    text
}

/// Appends a macro's arguments as a line, `between` between them; quotes hold words together.
fn push_words(arguments: &str, between: &str, text: &mut String) {
    let mut is_quoted = false;
    let mut line = String::with_capacity(arguments.len());
    for character in arguments.trim().chars() {
        match character {
            '"' => is_quoted = !is_quoted,
            ' ' if !is_quoted => line.push_str(between),
            _ => line.push(character),
        }
    }
    push_roff(&line, text);
    text.push('\n');
}

/// Appends `line`, its escapes as the characters they stand for or as nothing.
fn push_roff(line: &str, text: &mut String) {
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            text.push(character);
            continue;
        }
        match characters.next() {
            Some('-') => text.push('-'),
            Some('e' | '\\') => text.push('\\'),
            Some(' ' | '~' | '0') => text.push(' '),
            Some('f') => match characters.next() {
                Some('(') => _ = characters.nth(1),
                Some('[') => _ = characters.find(|&character| character == ']'),
                _ => {}
            },
            Some('(') => {
                let name: String = characters.by_ref().take(2).collect();
                text.push_str(match name.as_str() {
                    "aq" | "cq" | "oq" => "'",
                    "dq" | "lq" | "rq" => "\"",
                    "em" | "en" => "-",
                    _ => "",
                });
            }
            Some('s') => {
                // A size: a sign and a digit.
                if let Some('+' | '-') = characters.next() {
                    characters.next();
                }
            }
            Some('"') => return,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entities_are_the_characters_they_stand_for() {
        let plain = strip_tags("It&rsquo;s &#65;&#x42; &amp; &nope; &#xzz; & &#1114112; so");
        assert_eq!(plain, "It's AB & &nope; &#xzz; & &#1114112; so");
        assert_eq!(strip_tags("a &amp"), "a &amp");
        assert_eq!(strip_tags("é&é;é"), "é&é;é");
    }

    #[test]
    fn what_is_hidden_ends_with_its_element_and_a_cut_tag_with_the_page() {
        assert_eq!(strip_tags("<"), "");
        assert_eq!(strip_tags("a<pre>b<pre>c</pre>d").trim(), "a\n\nd");
        assert_eq!(strip_tags("<script src=x/>shown").trim(), "shown");
        assert_eq!(strip_tags("<gui>Open</gui> it"), "Open it");
    }

    #[test]
    fn perls_documentation_loses_its_codes_and_its_code() {
        let page = "use strict;\n=head1 NAME\n\nThe C<open> function, see L<perlfunc>: 1 < 2.\n\n    code;\n\n=cut\nmore();\n";
        let text = strip_pod(page);
        assert_eq!(text.trim(), "The open function, see perlfunc: 1 < 2.");
    }

    #[test]
    fn a_manual_page_loses_its_macros() {
        let page = ".\\\" comment\n.TH READ 2\n.SH NAME\nread \\- read from a \\fBfile\\fR\n.PP\nThe call\n.BR read (2)\n\
                    does \\(aqthis\\(aq.\n.nf\ncode\n.fi\n.I \"two words\"\nend\\";
        let text = strip_roff(page);
        assert!(
            text.contains("read - read from a file\n\nThe call\nread(2)\ndoes 'this'.\n"),
            "{text}"
        );
        assert!(
            text.ends_with("two words\nend\n") && !text.contains("code"),
            "{text}"
        );
    }
}
