//! What scrapers of metrics need of a server: Prometheus's text, and as much of HTTP as it takes to ask for it. No loop: the server has one.

#![forbid(unsafe_code)]

mod http;
mod powers;
mod scraper;
mod text;

pub use http::answer;
pub use powers::Powers;
pub use scraper::{Scraper, Stage};
pub use text::{Kind, Label, Text};
