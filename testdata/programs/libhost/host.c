/*
 * libhost LIBRARY [ARG...]: a C program that loads a Go library and calls its Run(), which
 * takes ARG... for the program's own.
 */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	void *lib = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
	void (*run)(void) = lib ? (void (*)(void))dlsym(lib, "Run") : NULL;

	if (!run) {
		fprintf(stderr, "libhost: %s\n", argc > 1 ? dlerror() : "no library");
		return 1;
	}
	run();
	return 0;
}
