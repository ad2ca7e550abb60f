//! `px` from the user's view: words in; exit code, standard output and standard error out.

mod command_line;
mod control;
mod input;
mod logs;
mod nested;
mod programs;
mod run;
mod terminal;
mod waited;
