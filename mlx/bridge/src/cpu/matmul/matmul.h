// Matrix products of activations and weights, y = x W^T, with x [rows][columns], W [outputs][columns] and
// y [rows][outputs]. Weights are quantized or plain; they are multiplied in the format in which they are stored.
//
// MatmulKernels is the interface of one instruction set. multiply and multiply_gathered choose its kernels by shape and
// format and split the work over the thread team. There are three kinds of kernels:
//   - row products: one activation row, or a few more (stream_rows). They stream the weights once, row by row, and are
//     bound by memory bandwidth.
//   - small-batch products: up to 16 activation rows (small_batch_rows). 16 weight rows at a time are unpacked, or
//     transposed if they are plain, and multiplied in registers, without a buffer.
//   - tile products: more rows. A tile of weights is unpacked to a buffer, and all activation rows are multiplied by
//     it.
#pragma once

#include <cstdint>
#include <functional>

#include "cpu/types.h"

namespace ingot::cpu {

// The storage format of a weight matrix. The codes of a row are a little-endian bit stream (mlx 0.32.4,
// backend/cpu/quantized.cpp). A group of consecutive codes of a row shares one scale and, if affine, one bias.
enum class Format {
  plain,   // float32, float16 or bfloat16
  affine,  // unsigned codes: weight = scale * code + bias
  fp4,     // e2m1 codes with e8m0 (mxfp4) or e4m3 (nvfp4) scales
  fp8,     // e4m3 codes with e8m0 scales (mxfp8)
};

enum class ScaleType { f32, f16, bf16, e8m0, e4m3 };

// Bytes of a scale.
constexpr int size_of(ScaleType t) {
  return t == ScaleType::e8m0 || t == ScaleType::e4m3 ? 1 : t == ScaleType::f32 ? 4 : 2;
}

// A weight matrix in memory that the caller owns. codes is row-major; scales and biases are [rows][groups].
struct Weights {
  const uint8_t* codes = nullptr;
  const void* scales = nullptr;
  const void* biases = nullptr;  // of affine codes. Null: they are symmetric, weight = scale * (code - zero)
  int zero = 0;
  int64_t rows = 0;     // outputs
  int64_t columns = 0;  // inputs
  Format format = Format::plain;
  int bits = 0;   // per code, or per element if plain
  int group = 0;  // columns that share a scale
  ScaleType scale_type = ScaleType::f32;
  Type type = Type::f32;  // of the elements, if plain

  // The zero point of symmetric integer codes, for fp4 that of its codes as integers (kFP4 in kernels.h). 0: they have
  // biases.
  int zero_point() const { return format == Format::fp4 ? 12 : biases ? 0 : zero; }
  int64_t row_bytes() const { return columns * bits / 8; }
  int64_t groups() const { return columns / group; }
  // Bytes of one scale; a bias has the same size.
  int scale_bytes() const { return size_of(scale_type); }
};

// The type to which activations are converted before they are multiplied. Integers have one scale per block of columns.
enum class Mode { f32, i16, i8, bf16 };

constexpr bool has_integers(Mode m) { return m == Mode::i16 || m == Mode::i8; }

// Columns per step of the kernels' loops. Activations are zero-padded to a multiple of it.
constexpr int kStep = 64;
// Columns of a tile of weights that are unpacked at a time: the reduction blocking (k_c in BLIS).
constexpr int kDepth = 512;
// Activation rows that reuse an unpacked tile before it is unpacked again (m_c in BLIS).
constexpr int kRowBlock = 256;

// The most activation rows of a panel, see Activations.
constexpr int kMaxPanelRows = 8;

// How activations are packed for a kernel.
struct Layout {
  Mode mode = Mode::f32;
  // Puts each 8 columns in the order in which 4-bit codes are unpacked: 0 4 1 5 2 6 3 7 in int16, 0 2 4 6 1 3 5 7 in
  // int8, and in int16 as high and low bytes, which row products of x86 take.
  bool nibbles = false;
  // Puts the activations of row products of 2-bit codes, and with AVX2 of e4m3 codes, in the order in which shifts
  // unpack these.
  bool quarters = false;
  // Puts the activations of 2-, 3-, 5- and 6-bit codes in the order in which AVX2 unpacks these, 16 columns at a time:
  // 0 8 1 9 2 10 3 11 and so on in int16, 0 1 8 9 2 3 10 11 and so on in int8.
  bool pairs = false;
  bool vector = false;       // panels have one row; for row_product
  bool small_batch = false;  // for small_batch_product; if neither this nor vector, for tile_product
  bool winograd = false;     // int16 for Winograd's inner product, see cpu/matmul/winograd_x86.h
  int block = kStep;         // columns that share an activation scale: 16, 32 or 64
  // The zero point of the codes, if tile_product or small_batch_product may subtract it from integer sums instead of
  // adding biases in float32; otherwise 0.
  int zero = 0;

  bool tiled() const { return !vector && !small_batch; }  // for tile_product

  bool operator==(const Layout&) const = default;
};

// Packed activations. data is [columns / kDepth][panel][kDepth / v][row of the panel][v]:
//   - the outermost dimension has kDepth columns, so that the operands of one unpacked tile are contiguous;
//   - a panel is the number of rows that a micro-kernel takes at once (float_rows, integer_rows, small_batch_panel or
//     float_batch_panel; fewer in the last one);
//   - v columns of a row stay together in 32 bits: 1 of float32, 2 of int16 or bfloat16, 4 of int8. Kernels broadcast
//     them.
// scales, sums and corrections have one entry per row and block of layout.block columns: [rows][columns / block], and
// [panel][columns / block][row of the panel] for tile_product.
struct Activations {
  Layout layout;
  int64_t rows = 0, columns = 0;  // columns include the padding
  void* data = nullptr;
  float* scales = nullptr;         // activation = scale * integer; unset for f32 and bf16
  float* sums = nullptr;           // sum of the unquantized activations: the factor of an affine bias
  // What is added to integer sums, modulo 2^32, if layout.winograd or layout.zero: the negated Winograd correction
  // terms, and -zero times the sum of the integers.
  int32_t* corrections = nullptr;
};

// Returns the index in a.data of column k, a multiple of kStep, of the panel of n rows that starts at row m.
static inline int64_t packed_offset(const Activations& a, int64_t m, int64_t k, int n) {
  int64_t from = k / kDepth * kDepth, wide = a.columns - from < kDepth ? a.columns - from : kDepth;
  return from * a.rows + m * wide + (k - from) * n;
}

// RowsCallback is called with rows [m0, m1) of a tile's results as soon as they are complete. Storing them while other
// rows are still being multiplied hides the latency of the stores.
struct RowsCallback {
  void (*call)(void* context, int64_t m0, int64_t m1);
  void* context;

  void operator()(int64_t m0, int64_t m1) const { call(context, m0, m1); }
};

// The most rows of x that across_product takes.
constexpr int kAcrossRows = 4;

// Reports whether a matrix can be multiplied without being transposed: affine codes of 4 or 8 bits.
inline bool takes_across(const Weights& w) {
  return w.format == Format::affine && (w.bits == 4 || w.bits == 8);
}

// Returns the floats that across_product needs to work: scales, biases, and their products with x.
inline int64_t across_work(const Weights& w) {
  return (2 + kAcrossRows) * w.rows * w.groups() + kAcrossRows * w.groups();
}

// The kernels of one instruction set. In the comments, "weight rows" are rows of W (outputs), "rows" are rows of x.
struct MatmulKernels {
  int tile;              // weight rows of a tile
  int float_rows;        // rows of a panel in mode f32
  int integer_rows;      // rows of a panel in the other modes
  int small_batch_panel;  // rows of a panel with Layout::small_batch and integers
  int float_batch_panel;  // rows of a panel with Layout::small_batch in mode f32
  int small_batch_tile;   // weight rows of a small-batch tile
  bool saturates;        // int8 products accumulate in int16, which codes of more than 6 bits overflow
  bool integers;         // supports modes i16 and i8
  bool winograd;         // tile_product is faster with Layout::winograd
  int quarter_rows;      // the most rows of row_product with Layout::quarters for 2-bit codes

  // Packs the panel of n rows that starts at row m: rows[i] points at row m+i of the given type. columns excludes
  // padding.
  void (*pack)(const Activations& a, const void* const* rows, Type type, int64_t columns, int64_t m, int n);
  // Computes y[m-m0][n-n0] = x[m] . W[n] for rows [m0, m1) and the weight rows [n0, n0+tile) that exist. y is
  // [m1-m0][tile]; columns past the last weight row are undefined. Calls done once for each panel.
  void (*tile_product)(const Weights& w, const Activations& x, int64_t n0, int64_t m0, int64_t m1, float* y,
                       const RowsCallback& done);
  // tile_product in mode bf16, which is as exact as f32 for bfloat16 or e4m3 weights and bfloat16 activations; may be
  // null.
  decltype(tile_product) bf16_tile_product;
  // Computes y[m][n-n0] = x[m] . W[n] for all rows and weight rows [n0, n1). y is [rows][n1-n0]. Requires
  // Layout::vector.
  void (*row_product)(const Weights& w, const Activations& x, int64_t n0, int64_t n1, float* y);
  // Returns the most rows that row_product accepts with these weights in a mode other than bf16. Null: one.
  int (*stream_rows)(const Weights& w, Mode mode);
  // Returns the most rows for which small_batch_product is faster than tile_product with these weights in a mode. Null:
  // none.
  int (*small_batch_rows)(const Weights& w, Mode mode);
  // tile_product for a small batch, with small_batch_tile in place of tile and without the callback. m0 is a multiple
  // of small_batch_panel.
  void (*small_batch_product)(const Weights& w, const Activations& x, int64_t n0, int64_t m0, int64_t m1, float* y);
  // Computes y[m] = x[m] W, with W as it lies, for up to kAcrossRows rows: y[m] is float32 [w.columns], x[m] float32
  // [w.rows]. Requires takes_across(w). work has across_work(w) floats.
  void (*across_product)(const Weights& w, const float* const* x, int rows, float* work, float* const* y);
  // Convert n elements to and from float32; narrow rounds to nearest even.
  void (*widen)(Type type, const void* from, float* to, int64_t n);
  void (*narrow)(Type type, const float* from, void* to, int64_t n);
};

const MatmulKernels& matmul_kernels();

// One of several products of the same x: y = x W^T + added, y [rows][weights.rows] of the given type.
struct Product {
  Weights weights;
  const float* added = nullptr;  // [weights.rows], added to each row before rounding; may be null
  void* y = nullptr;
  Type type = Type::f32;
};

// Computes count products of x [rows][columns] of the given type. fast allows int8 activations, which are less exact;
// layout_for decides where they are used. The result does not depend on the number of threads. Throws std::bad_alloc.
void multiply(const void* x, Type type, int64_t rows, int64_t columns, const Product* products, int count, bool fast);

// Finds the zero point of affine weights whose biases all equal -zero * scale, and replaces the biases by it: products
// then read fewer bytes, and have the same results. Such weights come from formats without biases, such as ggml's Q4_0.
void drop_biases(Weights& w);

// A gathered product: row i is multiplied by the matrix of expert[i], y[i] = x[i] W(expert[i])^T. Several x[i] may
// point at the same row. weights describes the matrix of expert 0; the matrices are contiguous.
struct Gathered {
  Weights weights;
  int64_t experts = 0;
  const void* const* x = nullptr;  // pointers to rows
  const uint32_t* expert = nullptr;
  void* const* y = nullptr;
  int64_t rows = 0;
  Type type = Type::f32;
};
void multiply_gathered(const Gathered& g, bool fast);

// Computes first, then second; both have the same rows and experts. between(i) computes row i of second.x from row i of
// first.y; it may run on any thread. There is no barrier between the products: the second product of an expert starts
// when the first product of that expert is complete.
void multiply_gathered(const Gathered& first, const std::function<void(int64_t)>& between, const Gathered& second,
                       bool fast);

// Computes y[i] = x[i] W(expert[i]), with matrices that are not transposed: x[i] has weights.rows elements and y[i]
// weights.columns. Requires takes_across(g.weights). The result does not depend on the number of threads or rows.
void multiply_across(const Gathered& g);

}  // namespace ingot::cpu
