//! Random steps from a seed.

use flatwater_segment::payload::Payload;
use serde_json::{Value, json};

use crate::dice::Dice;
use crate::step::{
    Clauses, Id, IndexKind, NewVectors, Point, Settings, Setup, Step, Test, Trace, Which, Write,
    moment, uuid,
};

/// A trace of so many steps.
pub(crate) fn trace(seed: u64, steps: usize) -> Trace {
    let mut dice = Dice::new(seed);
    let setup = Setup {
        segment_kb: [60, 100, 100_000][dice.roll(3) as usize],
        // Every so often real files, for what the memory cannot show.
        on_files: seed % 8 == 7,
    };
    let mut all = vec![Step::Create];
    while all.len() < steps {
        all.push(dice.step());
        if dice.one_in(8) {
            all.push(Step::Check { seed: dice.next() });
        }
    }
    all.push(Step::Stop);
    all.push(Step::Check { seed: dice.next() });
    Trace { setup, steps: all }
}

impl Dice {
    fn step(&mut self) -> Step {
        match self.roll(400) {
            0 => Step::Drop,
            1..=2 => Step::Create,
            3..=6 => Step::Stop,
            7..=10 => Step::Kill,
            11..=14 => Step::PowerLoss { seed: self.next() },
            15..=22 => Step::Settings(self.settings()),
            23..=24 => Step::Cancel,
            25..=26 => Step::Settle,
            _ => Step::Write {
                write: self.write(),
                wait: self.one_in(6),
            },
        }
    }

    fn settings(&mut self) -> Settings {
        Settings {
            segments: 1 + self.roll(4) as usize,
            deleted_percent: [5, 20, 50][self.roll(3) as usize],
            m: [0, 4, 8, 16][self.roll(4) as usize],
            indexing_kb: [0, 1, 10, 40][self.roll(4) as usize],
            segment_kb: [30, 60, 100, 100_000][self.roll(4) as usize],
        }
    }

    fn write(&mut self) -> Write {
        match self.roll(26) {
            0..=10 => Write::Upsert(self.points()),
            20 => Write::OverwritePayload {
                which: self.which(),
                payload: self.payload(),
            },
            21 => Write::DeleteKeys {
                which: self.which(),
                keys: vec![["color", "size", "extra", "at"][self.roll(4) as usize].to_owned()],
            },
            22 => Write::ClearPayload(self.which()),
            23..=24 => Write::UpdateVectors((0..=self.roll(2)).map(|_| self.vectors()).collect()),
            25 => Write::DeleteVectors {
                which: self.which(),
                vectors: [[true, false], [false, true], [true, true]][self.roll(3) as usize],
            },
            11..=13 => Write::Delete(self.which()),
            14..=17 => Write::SetPayload {
                which: self.which(),
                payload: self.payload(),
                key: self.one_in(4).then(|| "extra".to_owned()),
            },
            18 => {
                let (field, kind) = self.field();
                Write::CreateIndex { field, kind }
            }
            _ => Write::DropIndex {
                field: self.field().0,
            },
        }
    }

    fn field(&mut self) -> (String, IndexKind) {
        let (field, kind) = match self.roll(8) {
            0..=1 => ("color", IndexKind::Keyword),
            2 => ("size", IndexKind::Integer),
            3 => ("size", IndexKind::Float),
            4 => ("at", IndexKind::Datetime),
            5 => ("flag", IndexKind::Bool),
            6 => ("key", IndexKind::Uuid),
            _ => ("parts[].a", IndexKind::Integer),
        };
        (field.to_owned(), kind)
    }

    fn points(&mut self) -> Vec<Point> {
        let count = if self.one_in(12) {
            1 + self.roll(40)
        } else {
            1 + self.roll(4)
        };
        (0..count).map(|_| self.point()).collect()
    }

    fn vectors(&mut self) -> NewVectors {
        let (first, second) = (self.next(), self.next());
        NewVectors {
            id: self.id(),
            vectors: match self.roll(3) {
                0 => [Some(first), None],
                1 => [None, Some(second)],
                _ => [Some(first), Some(second)],
            },
        }
    }

    fn point(&mut self) -> Point {
        let (first, second) = (self.next(), self.next());
        Point {
            id: self.id(),
            vectors: match self.roll(5) {
                0 => [Some(first), None],
                1 => [None, Some(second)],
                _ => [Some(first), Some(second)],
            },
            payload: (!self.one_in(5)).then(|| self.payload()),
            pad: 0,
        }
    }

    fn id(&mut self) -> Id {
        match self.roll(8) {
            0 => Id::Uuid(self.roll(20)),
            _ => Id::Num(self.roll(150)),
        }
    }

    fn ids(&mut self) -> Vec<Id> {
        (0..=self.roll(12)).map(|_| self.id()).collect()
    }

    fn payload(&mut self) -> Payload {
        let mut payload = Payload::new();
        if !self.one_in(4) {
            payload.insert("color".into(), json!(self.color()));
        }
        if !self.one_in(4) {
            payload.insert("size".into(), json!(self.roll(20)));
        }
        if self.one_in(6) {
            payload.insert("color".into(), json!([self.color(), Value::Null]));
        }
        match self.roll(8) {
            0 => payload.insert("size".into(), json!([self.roll(20), self.roll(20), 2.5])),
            1 => payload.insert("at".into(), json!(moment(self.roll(60)))),
            2 => payload.insert("flag".into(), json!(self.one_in(2))),
            3 => payload.insert("key".into(), json!(uuid(self.roll(5)))),
            4 => {
                let parts = [(); 2].map(|()| json!({"a": self.roll(3), "b": self.roll(3)}));
                payload.insert("parts".into(), json!(parts))
            }
            _ => None,
        };
        payload
    }

    fn color(&mut self) -> String {
        ["red", "green", "blue", "grey"][self.roll(4) as usize].to_owned()
    }

    fn which(&mut self) -> Which {
        match self.roll(2) {
            0 => Which::Ids(self.ids()),
            _ => Which::Filter(self.clauses()),
        }
    }

    pub(crate) fn clauses(&mut self) -> Clauses {
        let mut clauses = Clauses::default();
        for _ in 0..=self.roll(3) {
            let test = self.test();
            match self.roll(3) {
                0 => clauses.must.push(test),
                1 => clauses.should.push(test),
                _ => clauses.must_not.push(test),
            }
        }
        clauses
    }

    fn test(&mut self) -> Test {
        match self.roll(13) {
            7 => Test::SizesFrom(self.roll(4) as usize),
            8 => Test::HourFrom(self.roll(60)),
            9 => Test::Flag(self.one_in(2)),
            10 => Test::Key(self.roll(5)),
            11 => Test::Part {
                a: self.roll(3),
                b: self.roll(3),
            },
            12 => Test::HasVector(self.roll(2) as usize),
            0 => Test::Color(self.color()),
            1 => Test::ColorAnyOf(vec![self.color(), self.color()]),
            2 => Test::ColorNoneOf(vec![self.color()]),
            3 => Test::ColorIsNull,
            4 => Test::SizeFrom(self.roll(20)),
            5 => Test::SizeIsEmpty,
            _ => Test::HasId(self.ids()),
        }
    }
}
