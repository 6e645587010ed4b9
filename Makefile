# The same tasks without make: sh run.sh study, sh run.sh test, ...
.PHONY: study test lab setup
study test lab setup:
	@sh run.sh $@
