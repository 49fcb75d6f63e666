// Package pictures places the pictures of a prompt among its tokens, decodes them, and runs them through the vision
// tower.
//
// A [Prompt] belongs to one request; its vectors are freed by its owner on the engine's thread. An [Encoder] belongs to
// a model and is safe for concurrent use, except for methods that say that they run on the engine's thread. It bounds
// the memory of pictures between their files and the tower; pictures that do not fit wait. A damaged picture is an
// error of its request, even if the decoder panics.
package pictures
