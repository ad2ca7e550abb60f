//! `px` as its users see it: words in; exit code, standard output and standard error out.

mod command_line;
mod nested;
mod run;
mod steer;
mod terminal;
mod waited;
