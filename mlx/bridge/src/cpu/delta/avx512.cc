#define INGOT_ISA avx512
#include "cpu/delta/gates.h"
#include "cpu/delta/kernels.h"
#include "cpu/delta/wkv.h"

namespace ingot::cpu {

extern const DeltaKernels delta_avx512;
const DeltaKernels delta_avx512 = {
    .delta = {avx512::delta<float>, avx512::delta<f16>, avx512::delta<bf16>},
    .column_delta = {avx512::column_delta<float>, avx512::column_delta<f16>, avx512::column_delta<bf16>},
    .scan = {avx512::scan<float>, avx512::scan<f16>, avx512::scan<bf16>},
    .channels = avx512::channels,
    .softplus = avx512::softplus,
    .unit_gates = {avx512::unit_gates<float>, avx512::unit_gates<f16>, avx512::unit_gates<bf16>},
    .conv = {avx512::conv<float>, avx512::conv<f16>, avx512::conv<bf16>},
    .wkv = {avx512::wkv<float>, avx512::wkv<f16>, avx512::wkv<bf16>},
};

}  // namespace ingot::cpu
