//! Patterns of words as a tree of their parts: a name is held against all of them at once, in time
//! of the places that it may be at, however many patterns there are.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use model::QueueName;
use model::words::{self, Part};

/// The patterns of words, each with its subscriptions.
#[derive(Debug)]
pub(crate) struct PatternTree {
    /// By their numbers; the first is the root.
    nodes: Vec<Node>,
    unused: Vec<u32>,
    /// See [`words::weight`], of all together.
    weight: usize,
}

/// A place in the tree: all patterns that begin with the same parts.
#[derive(Debug, Default)]
struct Node {
    words: BTreeMap<Box<str>, u32>,
    one: Option<u32>,
    any: Option<u32>,
    /// It is reached by `#`: any further word leaves it where it is.
    stays: bool,
    /// The subscriptions with patterns that end here.
    ends: BTreeSet<u64>,
}

/// The subscriptions that a name matches.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// The numbers of the subscriptions, ascending.
    pub(crate) subscriptions: Vec<u64>,
    /// Places that were looked at.
    pub(crate) steps: usize,
}

const ROOT: u32 = 0;

impl PatternTree {
    pub(crate) const fn new() -> Self {
        Self { nodes: Vec::new(), unused: Vec::new(), weight: 0 }
    }

    /// The subscriptions of this very pattern.
    pub(crate) fn called(&self, pattern: &QueueName) -> Vec<u64> {
        let parts = words::parts(pattern.as_str()).unwrap_or_default();
        let root = (!self.nodes.is_empty()).then_some(ROOT);
        let end =
            root.and_then(|root| parts.iter().try_fold(root, |at, part| self.node(at).next(*part)));
        end.map_or_else(Vec::new, |end| self.node(end).ends.iter().copied().collect())
    }

    /// Adds a subscription of a pattern that has these parts.
    pub(crate) fn insert(&mut self, pattern: &QueueName, number: u64) {
        if self.nodes.is_empty() {
            self.nodes.push(Node::default());
        }
        let parts = words::parts(pattern.as_str()).unwrap_or_default();
        self.weight += words::weight(&parts);
        let mut at = ROOT;
        for part in parts {
            at = self.step_into(at, part);
        }
        let is_new = self.node_mut(at).ends.insert(number);
        assert!(is_new, "a subscription has one pattern");
    }

    /// Removes the subscription and the nodes that led to it alone.
    pub(crate) fn remove(&mut self, pattern: &QueueName, number: u64) {
        let parts = words::parts(pattern.as_str()).unwrap_or_default();
        self.weight -= words::weight(&parts);
        let mut way = Vec::from([ROOT]);
        for part in &parts {
            let at = way.last().copied().unwrap_or(ROOT);
            let next = self.node(at).next(*part);
            way.push(next.expect("invariant: a pattern leads to its subscription"));
        }
        let last = way.last().copied().unwrap_or(ROOT);
        let was_there = self.node_mut(last).ends.remove(&number);
        assert!(was_there, "a subscription is where its pattern ends");
        while let (Some(at), Some(part)) = (way.pop(), parts.get(way.len().wrapping_sub(1))) {
            if !self.node(at).is_idle() {
                break;
            }
            let from = way.last().copied().unwrap_or(ROOT);
            self.node_mut(from).forget(*part);
            self.unused.push(at);
        }
    }

    /// The subscriptions with patterns that a name matches.
    pub(crate) fn find(&self, name: &str) -> Found {
        let mut found = Found::default();
        if self.nodes.is_empty() {
            return found;
        }
        let (mut at, mut next) = (Vec::new(), Vec::new());
        self.enter(ROOT, &mut at);
        for word in words::words(name) {
            for place in at.drain(..) {
                let node = self.node(place);
                if node.stays {
                    next.push(place);
                }
                for follower in node.words.get(word).copied().into_iter().chain(node.one) {
                    self.enter(follower, &mut next);
                }
            }
            // A place may be reached by several ways, and counts once.
            next.sort_unstable();
            next.dedup();
            found.steps += 1 + next.len();
            core::mem::swap(&mut at, &mut next);
        }
        let ends = at.into_iter().flat_map(|place| &self.node(place).ends);
        found.subscriptions = ends.copied().collect();
        found.subscriptions.sort_unstable();
        found
    }

    /// See [`words::weight`], of all patterns together.
    pub(crate) const fn weight(&self) -> usize {
        self.weight
    }

    /// Reaches a place, and with it the places that follow it by no word.
    fn enter(&self, place: u32, places: &mut Vec<u32>) {
        let mut reached = Some(place);
        while let Some(place) = reached {
            places.push(place);
            reached = self.node(place).any;
        }
    }

    fn step_into(&mut self, at: u32, part: Part<'_>) -> u32 {
        if let Some(next) = self.node(at).next(part) {
            return next;
        }
        let node = Node { stays: part == Part::Any, ..Node::default() };
        let next = match self.unused.pop() {
            Some(place) => {
                *self.node_mut(place) = node;
                place
            }
            None => {
                self.nodes.push(node);
                u32::try_from(self.nodes.len() - 1).expect("invariant: patterns are bounded")
            }
        };
        let node = self.node_mut(at);
        match part {
            Part::Word(word) => drop(node.words.insert(word.into(), next)),
            Part::One => node.one = Some(next),
            Part::Any => node.any = Some(next),
        }
        next
    }

    fn node(&self, place: u32) -> &Node {
        self.nodes
            .get(place as usize)
            .expect("invariant: nodes are referred to as long as they are")
    }

    fn node_mut(&mut self, place: u32) -> &mut Node {
        let node = self.nodes.get_mut(place as usize);
        node.expect("invariant: nodes are referred to as long as they are")
    }
}

impl Node {
    fn next(&self, part: Part<'_>) -> Option<u32> {
        match part {
            Part::Word(word) => self.words.get(word).copied(),
            Part::One => self.one,
            Part::Any => self.any,
        }
    }

    fn forget(&mut self, part: Part<'_>) {
        match part {
            Part::Word(word) => drop(self.words.remove(word)),
            Part::One => self.one = None,
            Part::Any => self.any = None,
        }
    }

    /// Nothing ends here, and nothing follows.
    fn is_idle(&self) -> bool {
        self.ends.is_empty() && self.words.is_empty() && self.one.is_none() && self.any.is_none()
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::String;

    use super::*;

    /// The definition, which tries everything.
    fn matches(parts: &[Part<'_>], words: &[&str]) -> bool {
        match (parts, words) {
            ([], words) => words.is_empty(),
            ([Part::Any, rest @ ..], words) => {
                (0..=words.len()).any(|skipped| matches(rest, &words[skipped..]))
            }
            ([_, ..], []) => false,
            ([Part::One, rest @ ..], [_, words @ ..]) => matches(rest, words),
            ([Part::Word(part), rest @ ..], [word, words @ ..]) => {
                part == word && matches(rest, words)
            }
        }
    }

    /// All of so many words at most, out of these.
    fn all(alphabet: &[&str], length_max: usize) -> Vec<String> {
        let mut texts: Vec<String> = alphabet.iter().map(|word| String::from(*word)).collect();
        let mut longest = texts.clone();
        for _ in 1..length_max {
            let longer = longest
                .iter()
                .flat_map(|text| alphabet.iter().map(move |word| format!("{text}.{word}")));
            longest = longer.collect();
            texts.extend_from_slice(&longest);
        }
        texts
    }

    fn name(text: &str) -> QueueName {
        QueueName::new(text).unwrap()
    }

    #[test]
    fn short_patterns_match_by_definition() {
        let patterns: Vec<String> = all(&["a", "b", "*", "#", ">"], 4)
            .into_iter()
            .filter(|pattern| words::parts(pattern).is_some())
            .collect();
        let mut tree = PatternTree::new();
        for (number, pattern) in (0..).zip(&patterns) {
            tree.insert(&name(pattern), number);
        }
        for removed in [1, 3, 2] {
            for text in all(&["a", "b", "c"], 5) {
                let words: Vec<_> = words::words(&text).collect();
                let expected = (0..).zip(&patterns).filter(|(number, pattern)| {
                    number % removed == 0 && matches(&words::parts(pattern).unwrap(), &words)
                });
                let expected: Vec<u64> = expected.map(|(number, _)| number).collect();
                assert_eq!(tree.find(&text).subscriptions, expected, "{text}");
            }
            // Some go, and come again.
            let next = if removed == 1 { 3 } else { 2 };
            for (number, pattern) in (0..).zip(&patterns) {
                let (was, is) = (number % removed == 0, number % next == 0);
                match (was, is) {
                    (true, false) => tree.remove(&name(pattern), number),
                    (false, true) => tree.insert(&name(pattern), number),
                    _ => {}
                }
            }
        }
        for (number, pattern) in (0..).zip(&patterns).filter(|(number, _)| number % 2 == 0) {
            tree.remove(&name(pattern), number);
        }
        assert_eq!((tree.weight(), tree.nodes.len()), (0, tree.unused.len() + 1));
    }

    /// The cost of a name grows with the patterns that may still match. It depends neither on the
    /// number of all patterns nor on how often a place is reached.
    #[test]
    fn names_cost_few_steps() {
        let mut tree = PatternTree::new();
        for number in 0..4_000 {
            tree.insert(&name(&format!("news.{number}.*.#")), number);
        }
        let found = tree.find("news.7.eu.sport");
        assert_eq!(found.subscriptions, [7]);
        assert!(found.steps < 20, "{} steps", found.steps);
        let mut tree = PatternTree::new();
        let pattern = name(&["#.a"; 20].join("."));
        tree.insert(&pattern, 1);
        let long = ["a"; 100].join(".");
        let found = tree.find(&long);
        assert_eq!(found.subscriptions, [1]);
        assert!(found.steps <= tree.weight(), "{} steps of {}", found.steps, tree.weight());
    }
}
