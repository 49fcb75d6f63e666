// Package certify makes and finds certificates of images: how far an image was measured to be from its base.
//
// Contract:
//   - A certificate has the format of package runtime/certificate, and is an attestation (package registry) that the
//     store keeps beside the image's manifest.
//   - A comparison over a text that a calibration or a search of types has read is not certified, and neither is one of
//     which the texts of a calibration are not known. Such errors match [ErrUnfit].
package certify
