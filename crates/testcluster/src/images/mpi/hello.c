/* Says hello from every rank, and from the host that it runs on. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv) {
    int size, rank, length;
    char name[MPI_MAX_PROCESSOR_NAME];

    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Get_processor_name(name, &length);

    /* Every rank adds its number: without a network between them there is no sum. */
    int sum = 0;
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    printf("Hello world from processor %s, rank %d out of %d processors\n", name, rank, size);
    if (rank == 0) {
        printf("Sum of all ranks: %d\n", sum);
    }
    MPI_Finalize();
    return 0;
}
