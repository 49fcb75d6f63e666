// Package filekind tells what a file is from its first bytes. A name says what a file was meant to be: downloads leave
// pointers, error pages and empty files under the names of models, and a model may have any name.
//
// Contract:
//   - [Of] never fails: bytes that no format begins with are [Unknown], and their reader says what is wrong with them.
//   - A kind says nothing of the rest of the file, which may be damaged.
//   - The package imports nothing of the project.
package filekind
