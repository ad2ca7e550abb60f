//! Text in columns. Columns are as wide as their widest cell, two spaces apart; the last one is never padded.

use phalanx_wire::plain;

/// A table that is being filled row by row.
#[derive(Debug)]
pub(crate) struct Table {
    columns: &'static [Column],
    rows: Vec<Vec<String>>,
}

/// A column's heading and alignment.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Column {
    Left(&'static str),
    /// Numbers.
    Right(&'static str),
}

impl Table {
    pub(crate) fn new(columns: &'static [Column]) -> Table {
        Table { columns, rows: Vec::new() }
    }

    /// One cell for each column.
    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        debug_assert_eq!(N, self.columns.len());
        self.rows.push(cells.map(|cell| plain::line(&cell)).into());
    }

    /// The table as lines, each with its line end.
    pub(crate) fn text(&self) -> String {
        let heading: Vec<String> = self.columns.iter().map(|column| column.heading().to_owned()).collect();
        let lines = || std::iter::once(&heading).chain(&self.rows);
        let widths: Vec<usize> = (0..self.columns.len())
            .map(|at| {
                lines().filter_map(|cells| cells.get(at)).map(|cell| cell.chars().count()).max().unwrap_or(0)
            })
            .collect();
        let mut text = String::new();
        for cells in lines() {
            let mut line = String::new();
            for ((cell, column), width) in cells.iter().zip(self.columns).zip(&widths) {
                let gap = " ".repeat(width.saturating_sub(cell.chars().count()));
                match column {
                    Column::Left(_) => line.extend([cell, &*gap, "  "]),
                    Column::Right(_) => line.extend([&*gap, cell, "  "]),
                }
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

impl Column {
    fn heading(self) -> &'static str {
        match self {
            Column::Left(heading) | Column::Right(heading) => heading,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut table = Table::new(&[Column::Right("RANK"), Column::Left("NODE"), Column::Left("RULE")]);
        table.row(["0".into(), "längster".into(), "x".into()]);
        table.row(["12345".into(), "n".into(), String::new()]);
        table.row(["1".into(), "a\x1b[2J\nb".into(), String::new()]);
        assert_eq!(table.text().lines().last(), Some("    1  a\\u001b[2J\\nb"));
        table.rows.pop();
        assert_eq!(table.text(), " RANK  NODE      RULE\n    0  längster  x\n12345  n\n");
    }
}
