package config

// Pictures describes a model's image input: the patch sizes of its tower, and the token ids of images in a prompt, 0 if
// the configuration has none.
type Pictures struct {
	Patch, Temporal, Merge   int
	Image, Video, Start, End int
}
