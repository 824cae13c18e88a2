//! Goal: documents are compared, found, changed and cut as MongoDB does it. Method: tables of cases; random values whose order is
//! asked for in two ways.

mod expressions;
mod json;
mod large;
mod matching;
mod order;
mod places;
mod schemas;
mod updates;
mod walking;
