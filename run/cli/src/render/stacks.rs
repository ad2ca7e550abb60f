//! Stacks of many ranks as one tree: a line for each function, with the ranks that are in it.

use phalanx_dvm::Ranges;
use serde_json::{Value as Json, json};

use crate::render::words;

/// Threads with the same stack.
#[derive(Clone, Debug)]
pub(crate) struct Stack {
    pub(crate) program: String,
    /// The outermost function first.
    pub(crate) frames: Vec<String>,
    pub(crate) ranks: Ranges,
    pub(crate) threads: u32,
}

impl Stack {
    pub(crate) fn json(&self) -> Json {
        json!({
            "program": self.program,
            "ranks": self.ranks.to_string(),
            "threads": self.threads,
            "frames": self.frames,
        })
    }
}

#[derive(Default)]
struct Node {
    name: String,
    ranks: Ranges,
    threads: u32,
    below: Vec<Node>,
}

impl Node {
    fn add<'a>(&mut self, mut path: impl Iterator<Item = &'a str>, stack: &Stack) {
        self.ranks.add(&stack.ranks);
        self.threads += stack.threads;
        let Some(name) = path.next() else { return };
        let at = self.below.iter().position(|node| node.name == name).unwrap_or_else(|| {
            self.below.push(Node { name: name.to_owned(), ..Node::default() });
            self.below.len() - 1
        });
        self.below[at].add(path, stack);
    }

    /// A function that is called alone stands below its caller. Where ways part, each begins further to the right: its first function is
    /// a head.
    fn write_below(&self, (indent, is_head): (usize, bool), text: &mut String) {
        let mut below: Vec<&Node> = self.below.iter().collect();
        below.sort_by_key(|node| (std::cmp::Reverse(node.ranks.count()), node.ranks.nth(0)));
        let parts = below.len() > 1;
        let indent = indent + usize::from(parts || is_head);
        for node in below {
            let is_all = node.ranks == self.ranks && node.threads == self.threads;
            node.write(indent, parts || !is_all, text);
            node.write_below((indent, parts), text);
        }
    }

    fn write(&self, indent: usize, with_ranks: bool, text: &mut String) {
        text.push_str(&format!("{}{}", "  ".repeat(indent), self.name));
        if with_ranks {
            let ranks: Vec<u32> = self.ranks.iter().collect();
            text.push_str(&format!("  [{}", words::ranks(&ranks)));
            if self.threads != self.ranks.count() {
                text.push_str(&format!(", {}", words::count(self.threads as usize, "thread")));
            }
            text.push(']');
        }
        text.push('\n');
    }
}

/// ```text
/// ring  [ranks 0-3]
///   main
///   PMPI_Barrier
///     poll  [ranks 0-2]
///     compute  [rank 3]
/// ```
pub(crate) fn tree(stacks: &[Stack]) -> String {
    let mut root = Node::default();
    for stack in stacks {
        let path = std::iter::once(stack.program.as_str()).chain(stack.frames.iter().map(String::as_str));
        root.add(path, stack);
    }
    let mut text = String::new();
    for program in &root.below {
        program.write(0, true, &mut text);
        program.write_below((0, true), &mut text);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(ranks: &str, threads: u32, frames: &str) -> Stack {
        let mut names = frames.split(' ').map(str::to_owned);
        Stack {
            program: names.next().unwrap_or_default(),
            frames: names.collect(),
            ranks: ranks.parse().expect("ranks"),
            threads,
        }
    }

    #[test]
    fn equal_parts_of_stacks_are_shown_once() {
        let stacks = [
            stack("3", 1, "ring main compute"),
            stack("0-2,4-63", 63, "ring main PMPI_Barrier opal_progress poll"),
            stack("0-63", 128, "ring clone3 listen epoll_wait"),
        ];
        insta::assert_snapshot!(tree(&stacks), @"
        ring  [ranks 0-63, 192 threads]
          main  [ranks 0-63]
            PMPI_Barrier  [ranks 0-2, 4-63]
              opal_progress
              poll
            compute  [rank 3]
          clone3  [ranks 0-63, 128 threads]
            listen
            epoll_wait
        ");
    }

    #[test]
    fn a_function_in_which_only_some_go_deeper_says_so() {
        let stacks = [stack("0-1", 2, "a main work"), stack("2", 1, "a main"), stack("2", 1, "sh wait4")];
        insta::assert_snapshot!(tree(&stacks), @"
        a  [ranks 0-2]
          main
          work  [ranks 0-1]
        sh  [rank 2]
          wait4
        ");
    }
}
