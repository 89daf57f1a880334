//! Finds the messages that can contain themselves: the strongly connected components of the message graph (Tarjan).

use std::collections::BTreeMap;

use super::messages::Messages;
use crate::model::{FieldType, Message, MessageName};

/// Sets `recursive` on every message that lies on a cycle.
pub(super) fn mark(messages: &mut Messages) {
    for name in on_cycles(messages) {
        if let Some(message) = messages.get_mut(&name) {
            message.recursive = true;
        }
    }
}

fn on_cycles(messages: &Messages) -> Vec<MessageName> {
    let mut search = Search {
        messages,
        visited: BTreeMap::new(),
        stack: Vec::new(),
        found: Vec::new(),
    };
    for message in messages.values() {
        if !search.visited.contains_key(&message.name) {
            search.visit(message);
        }
    }
    search.found
}

struct Search<'m> {
    messages: &'m Messages,
    /// Order of the first visit, and the earliest message on the stack that is reachable; `None` once off the stack.
    visited: BTreeMap<&'m MessageName, Option<usize>>,
    stack: Vec<&'m MessageName>,
    found: Vec<MessageName>,
}

impl<'m> Search<'m> {
    /// Recursion is as deep as messages are nested, not as there are messages.
    fn visit(&mut self, message: &'m Message) -> usize {
        let order = self.stack.len();
        self.visited.insert(&message.name, Some(order));
        self.stack.push(&message.name);
        let mut lowest = order;
        let mut contains_itself = false;
        for name in contained(message) {
            contains_itself |= *name == message.name;
            let reachable = match (self.visited.get(name), self.messages.get(name)) {
                (Some(Some(seen)), _) => *seen,
                (None, Some(next)) => self.visit(next),
                (Some(None), _) | (None, None) => continue,
            };
            lowest = lowest.min(reachable);
        }
        self.visited.insert(&message.name, Some(lowest));
        if lowest == order {
            let component = self.stack.split_off(order);
            let is_cycle = component.len() > 1 || contains_itself;
            for name in component {
                self.visited.insert(name, None);
                if is_cycle {
                    self.found.push(name.clone());
                }
            }
        }
        lowest
    }
}

fn contained(message: &Message) -> impl Iterator<Item = &MessageName> {
    message.fields.iter().filter_map(|field| match &field.ty {
        FieldType::Message(name) => Some(name),
        FieldType::Scalar(_) | FieldType::Enum(_) | FieldType::WellKnown(_) | FieldType::Kubernetes(_) => None,
    })
}
