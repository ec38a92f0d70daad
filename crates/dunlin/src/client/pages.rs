//! Lists that a server gives page by page.

use serde_json::{Map, Value as Json};

use crate::client::web::{Web, with_query};
use crate::exit::Error;

/// All objects under `name` of the pages at `path`, `most` at most.
pub(crate) fn all(
    web: &Web,
    path: &str,
    name: &str,
    parameters: &[(&str, Option<String>)],
    most: usize,
) -> Result<Vec<Map<String, Json>>, Error> {
    let mut found = Vec::new();
    let mut after = None;
    while found.len() < most {
        let max = (most - found.len()).min(PAGE);
        let mut query = parameters.to_vec();
        query.extend([("max", Some(max.to_string())), ("after", after)]);
        let mut page = web.get(&with_query(path.to_owned(), &query))?.object()?;
        if let Some(Json::Array(items)) = page.remove(name) {
            found.extend(items.into_iter().filter_map(|item| match item {
                Json::Object(object) => Some(object),
                _ => None,
            }));
        }
        match page.remove("next") {
            Some(Json::String(next)) => after = Some(next),
            _ => break,
        }
    }
    Ok(found)
}

/// As many as a server gives at once.
const PAGE: usize = 1_000;
