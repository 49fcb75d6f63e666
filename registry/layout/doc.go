// Package layout copies images from and to OCI image layouts, which are folders, and archives of them, which are tar
// files.
//
// The forms are those of image-spec v1.1.1 (image-layout.md), as skopeo, podman, crane, oras and umoci write and read
// them. A name of an image is the annotation org.opencontainers.image.ref.name of its entry in index.json. Referrers,
// such as signatures, are entries without a name.
//
// Contract:
//
//   - An image keeps its digest, and its referrers go with it.
//   - Every byte that comes out of a layout, an archive or a registry is verified against its digest before the
//     destination shows it. A store's own blobs are not read again if they are linked or cloned.
//   - Nothing is extracted by the names in an archive. Links, sparse files, paths that lead elsewhere, and names that
//     come twice are refused.
//   - A folder's index.json is replaced last, and an archive is renamed into its place when it is complete. What a
//     process that was killed has left is removed by the next copy to the same place.
//   - An archive's bytes depend on what is in it only.
package layout
