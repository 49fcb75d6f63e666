// Matrix product kernels for AVX2, FMA and F16C.
#define INGOT_ISA avx2
#include "cpu/simd/simd.h"

#include "cpu/matmul/small_batch/avx2.h"
#include "cpu/matmul/stream/stream_avx2.h"
#include "cpu/matmul/integers_x86.h"

namespace ingot::cpu {

extern const MatmulKernels matmul_avx2;
const MatmulKernels matmul_avx2 = avx2::kMatmul;

}  // namespace ingot::cpu
