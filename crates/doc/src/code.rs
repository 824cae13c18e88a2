//! The error codes of MongoDB, one table.

macro_rules! codes {
    ($($name:ident = $number:literal $text:literal),+ $(,)?) => {
        /// A MongoDB error code.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Code {
            $(#[doc = $text] $name,)+
        }

        impl Code {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            /// The number, as drivers know it.
            pub fn number(self) -> i32 {
                match self { $(Self::$name => $number,)+ }
            }

            /// The name, as replies have it.
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)+ }
            }
        }
    };
}

codes! {
    InternalError = 1 "InternalError",
    BadValue = 2 "BadValue",
    FailedToParse = 9 "FailedToParse",
    Unauthorized = 13 "Unauthorized",
    TypeMismatch = 14 "TypeMismatch",
    IllegalOperation = 20 "IllegalOperation",
    InvalidBson = 22 "InvalidBSON",
    NamespaceNotFound = 26 "NamespaceNotFound",
    IndexNotFound = 27 "IndexNotFound",
    PathNotViable = 28 "PathNotViable",
    ConflictingUpdateOperators = 40 "ConflictingUpdateOperators",
    CursorNotFound = 43 "CursorNotFound",
    NamespaceExists = 48 "NamespaceExists",
    DollarPrefixedFieldName = 52 "DollarPrefixedFieldName",
    InvalidIdField = 53 "InvalidIdField",
    EmptyFieldName = 56 "EmptyFieldName",
    CommandNotFound = 59 "CommandNotFound",
    ImmutableField = 66 "ImmutableField",
    CannotCreateIndex = 67 "CannotCreateIndex",
    InvalidOptions = 72 "InvalidOptions",
    InvalidNamespace = 73 "InvalidNamespace",
    IndexOptionsConflict = 85 "IndexOptionsConflict",
    IndexKeySpecsConflict = 86 "IndexKeySpecsConflict",
    CommandNotSupported = 115 "CommandNotSupported",
    MaxTimeMsExpired = 50 "MaxTimeMSExpired",
    InvalidPipelineOperator = 168 "InvalidPipelineOperator",
    CannotIndexParallelArrays = 171 "CannotIndexParallelArrays",
    QueryPlanKilled = 175 "QueryPlanKilled",
    InvalidIndexSpecificationOption = 197 "InvalidIndexSpecificationOption",
    QueryFeatureNotAllowed = 224 "QueryFeatureNotAllowed",
    MemoryLimit = 292 "QueryExceededMemoryLimitNoDiskUseAllowed",
    UnsupportedOpQuery = 352 "UnsupportedOpQueryCommand",
    BsonObjectTooLarge = 10334 "BSONObjectTooLarge",
    WriteConflict = 112 "WriteConflict",
    DuplicateKey = 11000 "DuplicateKey",
    OutOfDiskSpace = 14031 "OutOfDiskSpace",
    ReplaceRoot = 40228 "Location40228",
    StageShape = 40323 "Location40323",
    UnknownStage = 40324 "Location40324",
    UnknownField = 40415 "Location40415",
}
