// Matrix product kernels for AVX-512 with VNNI.
#define INGOT_ISA avx512
#include "cpu/simd/simd.h"

#include "cpu/matmul/small_batch/avx512.h"
#include "cpu/matmul/stream/stream_avx512.h"
#include "cpu/matmul/integers_x86.h"

namespace ingot::cpu {

extern const MatmulKernels matmul_avx512;
const MatmulKernels matmul_avx512 = avx512::kMatmul;

}  // namespace ingot::cpu
