// Package foreigntest packs files into images as other programs do, for tests: modctl, KitOps, Docker Model Runner,
// oras and builders of container images.
//
// Contract: images are the same for the same files. What a program writes was compared with images that it made, where
// interop has it, and else with its source and specification.
package foreigntest
