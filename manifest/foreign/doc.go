// Package foreign recognizes the images of other programs, and lists the files that an image holds.
//
// Contract:
//
//   - It is the one place that tells formats apart: by the media types of a manifest, the annotations of its layers,
//     and the config. It reads nothing else; package unpack decides by content whether an archive is one.
//   - Input is untrusted. A path of an [Image] is relative, clean and unique, and its descriptors are those that
//     [manifest.Blobs] accepts.
//   - An image that holds no model says what it is: [Image.Model] and [What].
package foreign
