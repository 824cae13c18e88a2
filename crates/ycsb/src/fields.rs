//! The fields of one record, and how an embedded store keeps them in one value.

/// Names and values of fields, in a buffer that is used again.
#[derive(Clone, Debug, Default)]
pub struct Fields {
    bytes: Vec<u8>,
    /// Where each name and each value ends.
    ends: Vec<(usize, usize)>,
}

impl Fields {
    /// Forgets all fields.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Adds a field.
    pub fn push(&mut self, name: &[u8], value: &[u8]) {
        self.push_with(name, |out| out.extend_from_slice(value));
    }

    /// Adds a field whose value `fill` appends.
    pub fn push_with(&mut self, name: &[u8], fill: impl FnOnce(&mut Vec<u8>)) {
        self.bytes.extend_from_slice(name);
        let name_end = self.bytes.len();
        fill(&mut self.bytes);
        self.ends.push((name_end, self.bytes.len()));
    }

    /// How many fields there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Names and values in the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let mut start = 0;
        self.ends.iter().map(move |(name_end, end)| {
            let name = self.bytes.get(start..*name_end).unwrap_or_default();
            start = *end;
            (name, self.bytes.get(*name_end..*end).unwrap_or_default())
        })
    }

    /// The value of the field `name`.
    pub fn get(&self, name: &[u8]) -> Option<&[u8]> {
        self.iter()
            .find(|(found, _)| *found == name)
            .map(|(_, value)| value)
    }

    /// Replaces `out` by one value that holds all fields: for each, its name's length (4 bytes,
    /// big-endian) and the name, its value's length and the value. This is the layout of YCSB's own
    /// bindings to embedded stores.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.clear();
        for (name, value) in self.iter() {
            for part in [name, value] {
                let len = u32::try_from(part.len()).unwrap_or(u32::MAX);
                out.extend_from_slice(&len.to_be_bytes());
                out.extend_from_slice(part);
            }
        }
    }

    /// Replaces the fields by those of `value`, of which only the one called `wanted` is kept if one
    /// is. False when the bytes are no fields; then the fields before the fault are kept.
    #[must_use]
    pub fn decode(&mut self, value: &[u8], wanted: Option<&[u8]>) -> bool {
        self.clear();
        let mut rest = value;
        while !rest.is_empty() {
            let Some((name, after)) = part(rest) else {
                return false;
            };
            let Some((content, after)) = part(after) else {
                return false;
            };
            if wanted.is_none_or(|wanted| wanted == name) {
                self.push(name, content);
            }
            rest = after;
        }
        true
    }

    /// Takes over each field of `changes`, in the place of the one with its name.
    pub fn update(&mut self, changes: &Self) {
        let before = self.clone();
        self.clear();
        for (name, value) in before.iter() {
            self.push(name, changes.get(name).unwrap_or(value));
        }
        for (name, value) in changes
            .iter()
            .filter(|(name, _)| before.get(name).is_none())
        {
            self.push(name, value);
        }
    }
}

/// A length and as many bytes, and the rest.
fn part(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, rest) = bytes.split_first_chunk::<4>()?;
    rest.split_at_checked(u32::from_be_bytes(*len) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(pairs: &[(&str, &str)]) -> Fields {
        let mut fields = Fields::default();
        for (name, value) in pairs {
            fields.push(name.as_bytes(), value.as_bytes());
        }
        fields
    }

    #[test]
    fn what_is_encoded_is_decoded() {
        let record = fields(&[("field0", "abc"), ("", ""), ("field2", "x")]);
        let mut bytes = Vec::new();
        record.encode(&mut bytes);
        assert_eq!(&bytes[..13], b"\0\0\0\x06field0\0\0\0");
        let mut back = Fields::default();
        assert!(back.decode(&bytes, None));
        assert!(back.iter().eq(record.iter()));
        assert!(back.decode(&bytes, Some(b"field2")));
        assert_eq!(
            (back.len(), back.get(b"field2"), back.is_empty()),
            (1, Some(&b"x"[..]), false)
        );
    }

    #[test]
    fn cut_bytes_are_noticed() {
        let mut bytes = Vec::new();
        fields(&[("a", "12"), ("b", "3")]).encode(&mut bytes);
        let whole = [0, 11, bytes.len()];
        for len in 0..=bytes.len() {
            let sound = Fields::default().decode(&bytes[..len], None);
            assert_eq!(sound, whole.contains(&len), "{len}");
        }
        assert!(!Fields::default().decode(&[0xff; 9], None));
    }

    #[test]
    fn an_update_replaces_by_name() {
        let mut record = fields(&[("a", "1"), ("b", "2")]);
        record.update(&fields(&[("b", "two"), ("c", "3")]));
        assert!(
            record
                .iter()
                .eq(fields(&[("a", "1"), ("b", "two"), ("c", "3")]).iter())
        );
    }
}
