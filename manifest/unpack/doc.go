// Package unpack reads the archives that images hold, and writes the files of images to a folder.
//
// Contract:
//
//   - Archives are untrusted. A path that leaves the folder, two files of one path, also on file systems that ignore
//     case, and more members or bytes than the limits of package limits are an [ErrArchive]. So are links and devices,
//     where a file is wanted.
//   - An archive is known by its first bytes: tar, also compressed with gzip or zstd.
//   - [Write] writes all files or none. It overwrites nothing unless it may, and it follows no link out of the folder.
package unpack
