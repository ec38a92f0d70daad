//! The figures of the engine's structure: its methods, fields and import circles.

use std::collections::{BTreeMap, BTreeSet};

use crate::repository::{Repository, TextFile};

const ENGINE: &str = "crates/engine/src/";

/// Counts that tell how much of the engine a reader has to hold in mind.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Structure {
    /// Files that hold methods of `Engine`, and the methods.
    files: usize,
    methods: usize,
    /// Fields of `Engine`, `Queue` and `Session`.
    fields: [usize; 3],
    /// Fields of all structs, and those that other files may touch.
    all_fields: usize,
    open_fields: usize,
    /// Files that import each other in the largest circle.
    circle: usize,
    /// Lines of Rust in the project, tests included.
    lines: usize,
}

impl Structure {
    pub(super) fn of(repository: &Repository) -> Structure {
        let files = product_files(repository);
        let mut structure = Structure::default();
        for file in &files {
            let methods = methods_of_engine(&file.text);
            structure.files += usize::from(methods > 0);
            structure.methods += methods;
            structure.count_fields(&file.text);
        }
        structure.circle = circle_of(repository).len();
        structure.lines = repository.under("", ".rs").map(|file| file.text.lines().count()).sum();
        structure
    }

    fn count_fields(&mut self, text: &str) {
        for (name, fields) in structs(text) {
            let open = fields.iter().filter(|field| field.starts_with("pub")).count();
            self.all_fields += fields.len();
            self.open_fields += open;
            for (known, count) in ["Engine", "Queue", "Session"].iter().zip(&mut self.fields) {
                if *known == name {
                    *count = fields.len();
                }
            }
        }
    }

    pub(super) fn print(&self) {
        let [engine, queue, session] = self.fields;
        let open = self.open_fields * 100 / self.all_fields.max(1);
        println!(
            "files with impl Engine {} (at most 25), its methods {} (250)",
            self.files, self.methods
        );
        println!(
            "fields of Engine, Queue, Session {engine}, {queue}, {session} (at most 12, 8, 6)"
        );
        println!("open fields of the engine {open} % (at most 30)");
        println!("files in the largest import circle of the engine {} (at most 4)", self.circle);
        println!("Rust lines, tests included {} (at most 133,000)", self.lines);
    }
}

/// Functions in blocks `impl Engine`.
fn methods_of_engine(text: &str) -> usize {
    let mut inside = false;
    let mut count = 0;
    for line in text.lines() {
        match line {
            "impl Engine {" => inside = true,
            "}" => inside = false,
            _ => count += usize::from(inside && is_method(line)),
        }
    }
    count
}

fn is_method(line: &str) -> bool {
    let Some(code) = line.strip_prefix("    ").filter(|code| !code.starts_with(' ')) else {
        return false;
    };
    let mut words = code.split(' ').skip_while(|word| word.starts_with("pub") || *word == "const");
    words.next() == Some("fn")
}

/// The structs of a file with named fields, and the line of each field.
fn structs(text: &str) -> Vec<(&str, Vec<&str>)> {
    let mut structs: Vec<(&str, Vec<&str>)> = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        if let Some((_, head)) = line.split_once("struct ")
            && !line.starts_with([' ', '/'])
            && line.ends_with('{')
        {
            let end = head.find(|letter: char| !letter.is_alphanumeric()).unwrap_or(head.len());
            structs.push((&head[..end], Vec::new()));
            inside = true;
        } else if line == "}" {
            inside = false;
        } else if let Some(field) = line.strip_prefix("    ")
            && inside
            && !field.starts_with([' ', '/', '#', '}', '>', ')'])
            && let Some((_, fields)) = structs.last_mut()
        {
            fields.push(field);
        }
    }
    structs
}

/// The files that each file imports, by module path.
fn imports(files: &[&TextFile]) -> BTreeMap<String, BTreeSet<String>> {
    let module = |file: &TextFile| {
        let path = file.path.strip_prefix(ENGINE).unwrap_or_default();
        path.trim_end_matches(".rs").replace('/', "::")
    };
    let modules: BTreeSet<String> = files.iter().map(|file| module(file)).collect();
    let mut graph = BTreeMap::new();
    for file in files {
        let own = module(file);
        let uses = file.text.split("use crate::").skip(1);
        let mut targets = BTreeSet::new();
        for path in uses.filter_map(|rest| rest.split_once(';').map(|(path, _)| path)) {
            let mut parts: Vec<&str> =
                path.split('{').next().unwrap_or_default().split("::").collect();
            while !parts.is_empty() && !modules.contains(&parts.join("::")) {
                parts.pop();
            }
            targets.insert(parts.join("::"));
        }
        targets.retain(|target| *target != own && !target.is_empty());
        graph.insert(own, targets);
    }
    graph
}

/// The files of the engine that import each other in the largest circle, by module path.
pub(crate) fn circle_of(repository: &Repository) -> Vec<String> {
    largest_circle(&imports(&product_files(repository)))
}

fn product_files(repository: &Repository) -> Vec<&TextFile> {
    repository.under(ENGINE, ".rs").filter(|file| !file.path.ends_with("_test.rs")).collect()
}

/// The nodes of the largest strongly connected component that is a circle.
fn largest_circle(graph: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    let reach: BTreeMap<&String, BTreeSet<&String>> =
        graph.keys().map(|node| (node, reachable(graph, node))).collect();
    let circle = |node: &String| {
        let forward = reach.get(node)?;
        let back = |other: &&&String| reach.get(**other).is_some_and(|it| it.contains(node));
        Some(forward.iter().filter(back).map(|other| (*other).clone()).collect::<Vec<_>>())
    };
    graph.keys().filter_map(circle).max_by_key(Vec::len).unwrap_or_default()
}

fn reachable<'g>(
    graph: &'g BTreeMap<String, BTreeSet<String>>,
    from: &String,
) -> BTreeSet<&'g String> {
    let mut seen = BTreeSet::new();
    let mut open: Vec<&String> = graph.get(from).into_iter().flatten().collect();
    while let Some(node) = open.pop() {
        if seen.insert(node) {
            open.extend(graph.get(node).into_iter().flatten());
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structure_counts_methods_fields_and_circles() {
        let engine = "use crate::a::A;\npub struct Engine {\n    /// One.\n    \
            pub(crate) a: A,\n    b: u8,\n}\nimpl Engine {\n    pub(crate) fn one(&self) {\n      \
            fn inner() {}\n    }\n    // fn no\n    fn two() {}\n}\n\
            impl A {\n    fn three() {}\n}\n";
        let file = |path: &str, text: &str| TextFile {
            path: format!("{ENGINE}{path}"),
            text: text.to_owned(),
        };
        let files = vec![
            file("a.rs", "use crate::b::c::{C, D};\n"),
            file("b/c.rs", "use crate::engine::Engine;\n"),
            file("d.rs", "use crate::a::A;\n"),
            file("engine.rs", engine),
        ];
        let repository = Repository { root: "/".into(), files };
        let found = Structure::of(&repository);
        let expected = Structure {
            files: 1,
            methods: 2,
            fields: [2, 0, 0],
            all_fields: 2,
            open_fields: 1,
            circle: 3,
            lines: 3 + engine.lines().count(),
        };
        assert_eq!(found, expected);
    }
}
