mod queue;
mod slot;
