/* Which of the libraries made of these sources runs here; a cluster has several kinds of nodes. */
#include <stdint.h>

/* 0 of any processor, 1 of one like Haswell (AVX2, FMA), 2 of one like Skylake (AVX-512). */
int64_t processor(void)
{
#if defined(__x86_64__) && defined(__GNUC__)
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
        return 0;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")
        && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")
        && __builtin_cpu_supports("avx512cd"))
        return 2;
    return 1;
#else
    return 0;
#endif
}
