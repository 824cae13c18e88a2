//! A schema as a tree.

use crate::raw::{Kind, OwnedValue};
use crate::regex::Pattern;

/// What a value has to be like: all of its rules hold. A rule for values of one kind holds for those of all others.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Schema {
    pub(super) rules: Vec<Rule>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Rule {
    Kinds(Vec<Kind>),
    OneOfValues(Vec<OwnedValue>),
    All(Vec<Schema>),
    Any(Vec<Schema>),
    One(Vec<Schema>),
    Not(Schema),
    /// Of numbers: the bound, and whether it is none of them itself.
    Minimum(OwnedValue, bool),
    Maximum(OwnedValue, bool),
    MultipleOf(OwnedValue),
    /// Of texts, in code points.
    MinLength(u64),
    MaxLength(u64),
    Pattern(Pattern),
    /// Of arrays.
    MinItems(u64),
    MaxItems(u64),
    UniqueItems,
    Items(Items),
    /// Of documents.
    MinProperties(u64),
    MaxProperties(u64),
    Required(Vec<String>),
    Properties(Properties),
    /// Where the field is there, the others are.
    DependsOnFields(String, Vec<String>),
    /// Where the field is there, the document is so.
    DependsOnSchema(String, Schema),
}

/// What becomes of what no other schema is for.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Others {
    Allowed,
    Refused,
    Are(Schema),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Items {
    /// By their places.
    pub(super) first: Vec<Schema>,
    pub(super) others: Others,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Properties {
    pub(super) named: Vec<(String, Schema)>,
    pub(super) patterns: Vec<(Pattern, Schema)>,
    pub(super) others: Others,
}
